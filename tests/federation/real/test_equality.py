"""Over real sites (TLS, node authentication, processes of their own) a run gives the simulation's numbers."""

import pytest

from fedcso.runs.config import RunConfig
from tests.command_line import read_csv
from tests.federation.real.faults import fault, seconds_of
from tests.federation.real.local import assert_same, final, outcomes, simulated

QUADRATIC = ["--problem", "nested_quadratic", "--local-steps", 5, "--outer-batch", 2]
THREE = ["--sites", 3, "--rounds", 3]
AUROC = ["--problem", "auroc", *THREE, "--local-steps", 4, "--evaluate-every", 3]


def assert_like_the_simulation(folder, *algorithms):
    rounds = RunConfig.of(folder).plan.rounds
    for algorithm in algorithms:
        found, expected = final(folder, algorithm), simulated(folder, algorithm)
        assert_same(found, expected)
        assert found.costs == expected.costs
        assert set(outcomes(folder, rounds, algorithm).values()) == {"answered"}


def test_methods_with_momentum_and_local_state_equal_the_simulation(record_property, start):
    # As small as it can be: in the second round, two sites use the states that they kept after the first.
    small = ["--sites", 2, "--rounds", 2]
    local = start(*QUADRATIC, *small, "--algorithm", "FCSG-M", "Acc-FCSG-M", "--initial-batch", 4)
    folder = local.run()
    assert_like_the_simulation(folder, "FCSG-M", "Acc-FCSG-M")
    assert folder.status == "done"
    for file in ("report.html", "curves.png", "metrics.csv", "model-final.safetensors", "clients.csv"):
        assert (folder.path / file).stat().st_size, file
    rows = read_csv(folder.path / "sites.csv")
    assert len(rows) == 2 * 2 * 2
    assert all(float(row["seconds"]) > 0 and int(row["bytes_up"]) > 0 for row in rows)
    record_property(*fault("none (two sites)", "the simulation's numbers", seconds=seconds_of(folder, 2)))


@pytest.mark.federation
def test_compressed_messages_equal_the_simulation(start):
    ways = [f"FCSG-M(send_u={way})" for way in ("bfloat16", "int8", "every(2)", "inferred")]
    local = start(*QUADRATIC, *THREE, "--algorithm", *ways)
    assert_like_the_simulation(local.run(), *ways)


@pytest.mark.federation
def test_other_methods_equal_the_simulation(start):
    local = start(*QUADRATIC, *THREE, "--algorithm", "FCSG", "Local-SCGDM")
    assert_like_the_simulation(local.run(), "FCSG", "Local-SCGDM")


@pytest.mark.federation
def test_coda_equals_the_simulation_and_sites_measure_at_home(start):
    local = start(*AUROC, "--algorithm", "CODA+(stage_steps=6)")
    folder = local.run()
    assert_like_the_simulation(folder, "CODA+(stage_steps=6)")
    assert 0 < float(read_csv(folder.path / "metrics.csv")[-1]["client_average_precision"]) <= 1
    assert (folder.path / "models" / "LOADING.md").is_file()
