"""Over real sites (TLS, node authentication, processes of their own) a run gives the simulation's numbers."""

import pytest

from tests.command_line import read_csv
from tests.federation.real.local import assert_same, final, outcomes, simulated

QUADRATIC = ["--problem", "nested_quadratic", "--sites", 3, "--rounds", 3, "--local-steps", 5, "--outer-batch", 2]
AUROC = ["--problem", "auroc", "--sites", 3, "--rounds", 3, "--local-steps", 4, "--evaluate-every", 3]


def assert_like_the_simulation(folder, *algorithms):
    for algorithm in algorithms:
        found = final(folder, algorithm)
        assert_same(found, simulated(folder, algorithm))
        assert found.costs == simulated(folder, algorithm).costs
        assert set(outcomes(folder, 3, algorithm).values()) == {"answered"}


def test_methods_with_momentum_and_local_state_come_out_as_simulated(start):
    local = start(*QUADRATIC, "--algorithm", "FCSG-M", "Acc-FCSG-M", "--initial-batch", 4)
    folder = local.run()
    assert_like_the_simulation(folder, "FCSG-M", "Acc-FCSG-M")
    assert folder.status == "done"
    for file in ("report.html", "curves.png", "metrics.csv", "model-final.safetensors", "clients.csv"):
        assert (folder.path / file).stat().st_size, file
    rows = read_csv(folder.path / "sites.csv")
    assert len(rows) == 2 * 3 * 3
    assert all(float(row["seconds"]) > 0 and int(row["bytes_up"]) > 0 for row in rows)


@pytest.mark.federation
def test_u_sent_for_less_comes_out_as_simulated(start):
    ways = [f"FCSG-M(send_u={way})" for way in ("bfloat16", "int8", "every(2)", "inferred")]
    local = start(*QUADRATIC, "--algorithm", *ways)
    assert_like_the_simulation(local.run(), *ways)


@pytest.mark.federation
def test_the_others_come_out_as_simulated(start):
    local = start(*QUADRATIC, "--algorithm", "FCSG", "Local-SCGDM")
    assert_like_the_simulation(local.run(), "FCSG", "Local-SCGDM")


@pytest.mark.federation
def test_coda_comes_out_as_simulated_and_sites_measure_at_home(start):
    local = start(*AUROC, "--algorithm", "CODA+(stage_steps=6)")
    folder = local.run()
    assert_like_the_simulation(folder, "CODA+(stage_steps=6)")
    assert 0 < float(read_csv(folder.path / "metrics.csv")[-1]["client_average_precision"]) <= 1
    assert (folder.path / "models" / "LOADING.md").is_file()
