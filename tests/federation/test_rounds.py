"""Rounds over sites, without processes: they are the simulation's, and no answer breaks or deceives the coordinator."""

import json

import pytest
import torch

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from fedcso.core.errors import FedcsoError
from fedcso.core.tree import nbytes
from fedcso.federation.options import Federation
from fedcso.federation.privacy import statement
from tests.federation.in_process import Sites
from tests.helpers import assert_same_run

ROUNDS = 6
CODECS = ["full", "bfloat16", "int8", "every(3)", "inferred"]


def federation_of(folder, algorithm="FCSG-M", **settings):
    config = {
        "problem": "nested_quadratic",
        "clients": 4,
        "algorithm": [algorithm],
        "learning_rate": 0.05,
        "rounds": ROUNDS,
        "local_steps": 3,
        "outer_batch": 2,
        "inner_batch": 3,
        "estimator": "plain",
    }
    return Sites(folder, config | settings)


def of_shared(trace):
    """What a run over sites and a simulation have in common: sites measure nothing here."""
    trace.rows = [{name: row[name] for name in ("round", "train_loss", "bytes_up", "bytes_down")} for row in trace.rows]
    trace.best, trace.output_row = trace.last, {}
    return trace


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("algorithm", ["FCSG-M", "Acc-FCSG-M", "Local-SCGDM"])
@pytest.mark.parametrize("participation", [1.0, 2])
def test_a_run_over_sites_is_the_simulation_and_so_are_its_bytes(
    codec, algorithm, participation, tmp_path, monkeypatch
):
    sites = federation_of(tmp_path, algorithm, send_u=codec, participation=participation)
    found, expected = sites.play(monkeypatch), sites.simulated()
    assert_same_run(of_shared(found), of_shared(expected))
    assert {row["outcome"] for row in sites.rows} == {"answered"}


@pytest.mark.parametrize(
    "algorithm",
    [
        "FAFED(base=FCSG-M)",
        "FAFED(base=FCSG-M, send_u=int8)",
        "FAFED(base=FCSG-M, send_u=every(3))",
        "FedProx(base=FedAdam(base=FCSG-M))",
        "MIME",
        "MimeLite",
        "Fed-GLOMO",
    ],
)
def test_sites_may_send_something_else_than_the_server(algorithm, tmp_path, monkeypatch):
    """A preconditioner comes from the server alone; MIME sends a gradient or x, in turn."""
    sites = federation_of(tmp_path, algorithm, participation=2)
    assert_same_run(of_shared(sites.play(monkeypatch)), of_shared(sites.simulated()))
    assert {row["outcome"] for row in sites.rows} == {"answered"}


@pytest.mark.parametrize("algorithm", ["FeDXL2", "SOX"])
@pytest.mark.parametrize("settings", [{}, {"participation": 2, "weights": "size"}], ids=["all", "two by size"])
def test_states_for_each_positive_stay_at_the_sites_and_scores_are_pooled(algorithm, settings, tmp_path, monkeypatch):
    data = {"problem": "auprc", "data": "digits", "clients": 3, "net": "linear", "rounds": 3}
    sites = federation_of(tmp_path, algorithm, **data, **settings)
    found, expected = sites.play(monkeypatch), sites.simulated(engine="reference")
    assert_same_run(of_shared(found), of_shared(expected), tolerance=1e-6)
    assert {row["outcome"] for row in sites.rows} == {"answered"}
    assert ("outer" in found.shared) == (algorithm == "FeDXL2")


def test_a_site_whose_scores_have_another_shape_is_left_out(tmp_path, monkeypatch):
    def more(words, tree):
        shared = tree["shared"]
        longer = {name: torch.cat([leaf, leaf]) for name, leaf in shared["inner"].items()}
        return words, tree | {"shared": shared | {"inner": longer}}

    data = {"problem": "auprc", "data": "digits", "clients": 3, "net": "linear", "rounds": 2}
    sites = federation_of(tmp_path, "FeDXL2", **data)
    sites.tampered = {(1, 1): more}
    trace = sites.play(monkeypatch)
    assert [str(fault) for fault in trace.dropped] == [
        "client 1 was left out of round 1: its update has other shapes than requested"
    ]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"aggregate": "median"},
            "aggregate = 'median' must be mean: FeDXL2 concatenates inner and outer of all sites",
        ),
        ({"aggregate": "trimmed_mean"}, "aggregate = 'trimmed_mean' must be mean: FeDXL2"),
        ({"clip_update": 1.0, "dp_noise": 1.0}, "dp_noise = 1.0 must be 0: FeDXL2 .* to which no noise is added"),
    ],
)
def test_pools_are_not_robust_and_have_no_noise(options, says, tmp_path, monkeypatch):
    sites = federation_of(tmp_path, "FeDXL2", problem="auprc", data="digits", clients=3, net="linear")
    sites.options = options
    with pytest.raises(FedcsoError, match=says):
        sites.play(monkeypatch)


def test_sites_know_the_length_of_the_run_and_the_weight_decay(tmp_path, monkeypatch):
    sites = federation_of(tmp_path, learning_rate="cosine(0.1)", weight_decay=0.2)
    assert_same_run(of_shared(sites.play(monkeypatch)), of_shared(sites.simulated()))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("algorithm", ["FCSG-M", "Acc-FCSG-M"])
def test_an_interrupted_run_goes_on_with_what_sites_remember(codec, algorithm, tmp_path, monkeypatch):
    sites = federation_of(tmp_path, algorithm, send_u=codec, participation=3)
    snapshots = []

    def interrupt(progress):
        snapshots.append(progress.snapshot())
        if progress.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sites.play(monkeypatch, callbacks=[interrupt])
    found = sites.play(monkeypatch, start=snapshots[-1])
    assert_same_run(of_shared(found), of_shared(sites.simulated()))
    assert {row["outcome"] for row in sites.rows} == {"answered"}


@pytest.mark.parametrize("codec", ["every(3)", "inferred"])
def test_a_site_that_lost_its_memory_is_left_out_once_and_told_everything(codec, tmp_path, monkeypatch):
    sites = federation_of(tmp_path, send_u=codec)

    def lose(progress):
        if progress.done == 1:
            sites.forget(2)

    trace = sites.play(monkeypatch, callbacks=[lose])
    outcomes = {(row["site"], row["round"]): row["outcome"] for row in sites.rows}
    assert outcomes.pop(("2", 2)) == "it has lost what it remembered of the last round"
    assert set(outcomes.values()) == {"answered"}
    assert [str(fault) for fault in trace.dropped] == [
        "client 2 was left out of round 1: it has lost what it remembered of the last round"
    ]


# ------------------------------------------------------------------------------- what a site may not decide


def saying(**changes):
    return lambda words, tree: (words | changes, tree)


def counting(**changes):
    return lambda words, tree: (words | {"costs": words["costs"] | changes}, tree)


@pytest.mark.parametrize(
    "lie",
    [
        {"rounds": -1},
        {"rounds": -(10**9)},
        {"rounds": 10**30},
        {"bytes_up": -(10**9), "bytes_down": 10**30},
        {"participants": 7, "epsilon": 0.0},
    ],
)
def test_what_the_server_knows_it_counts_itself(lie, tmp_path, monkeypatch):
    """A site that reports rounds could lower the ε that is reported for all."""
    sites = federation_of(tmp_path)
    sites.tampered = {(1, round): counting(**lie) for round in range(ROUNDS)}
    trace = sites.play(monkeypatch)
    assert trace.costs == sites.simulated().costs
    assert trace.costs.rounds == ROUNDS
    federation = Federation(sites="4", dp_noise=1.0, clip_update=1.0)
    assert json.loads(statement(federation, [trace]))["rounds"] == ROUNDS


def test_a_site_that_lies_about_every_number_changes_nothing_in_the_account(tmp_path, monkeypatch):
    """What is lied about is as far off as the checks of answers allow; the update is clipped all the same."""
    lies = {"train_loss": -1e300, "seconds": 0.0, "forgot": True, "site": "0", "number": 0, "size": 10**9}
    lies |= {"rounds": 0, "epsilon": 0.0, "delta": 1.0, "noise": 99.0, "norm": 0.0, "clip": 1e9, "refuse": "", "n": -1}

    def lie(words, tree):
        costs = {"outer_samples": 0, "inner_samples": 1, "gradients": 2, "rounds": -9, "bytes_up": -(10**9)}
        huge = {name: part + 1e6 for name, part in tree["shared"].items()}
        return words | lies | {"costs": costs}, {"shared": huge}

    found = {}
    options = {"dp_noise": 2.0, "clip_update": 0.5}
    federation = Federation(sites="4", **options)
    for name, tampered in (("honest", {}), ("lying", {(1, round): lie for round in range(ROUNDS)})):
        sites = federation_of(tmp_path / name)
        sites.options, sites.tampered, sites.rows = options, tampered, []
        trace = sites.play(monkeypatch)
        found[name] = json.loads(statement(federation, [trace], sites.rows))
        assert torch.isfinite(trace.last).all()
        assert float(trace.last.norm()) < 1e3  # one site's share of a round is 0.5 / 4
    clipped = {name: [about.pop("clipped") for about in one["sites"].values()] for name, one in found.items()}
    assert clipped["lying"][1] == ROUNDS
    assert found["lying"] == found["honest"]
    for about in found["lying"]["sites"].values():
        assert (about["rounds"], about["smallest_noise"]) == (ROUNDS, 2.0 * 0.5 / 4)
        assert about["epsilon"] == found["lying"]["epsilon"] > 0


def test_a_site_that_was_left_out_has_spent_less(tmp_path, monkeypatch):
    sites = federation_of(tmp_path)
    sites.options = {"dp_noise": 2.0, "clip_update": 0.5}
    sites.tampered = {(2, round): saying(seconds=-1.0) for round in (0, 3)}
    trace = sites.play(monkeypatch)
    about = json.loads(statement(Federation(sites="4", **sites.options), [trace], sites.rows))
    assert [one["rounds"] for one in about["sites"].values()] == [ROUNDS, ROUNDS, ROUNDS - 2, ROUNDS]
    assert about["sites"]["2"]["epsilon"] < about["epsilon"]
    assert about["sites"]["0"]["smallest_noise"] == 2.0 * 0.5 / 4


@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        *[(counting(**{name: value}), "counts") for name in ("outer_samples", "gradients") for value in (-1, 10**9)],
        (counting(inner_samples="many"), "counts"),
        (counting(inner_samples=True), "counts"),
        (counting(inner_samples=1.5), "counts"),
        (counting(inner_samples=None), "counts"),
        (saying(train_loss=float("nan")), "training loss"),
        (saying(train_loss=float("-inf")), "training loss"),
        (saying(train_loss="low"), "training loss"),
        (saying(train_loss=10**400), "training loss"),
        (saying(seconds=-1.0), "duration"),
        (saying(seconds=1e9), "duration"),
        (saying(seconds="soon"), "duration"),
        (saying(costs=[]), "is incomplete"),
        (lambda words, tree: ({}, tree), "is incomplete"),
        (lambda words, tree: (words, {"output": tree["shared"]["x"]}), "is incomplete"),
    ],
)
def test_an_impossible_answer_does_not_count(tamper, reason, tmp_path, monkeypatch):
    sites = federation_of(tmp_path, rounds=2)
    sites.tampered = {(1, 1): tamper}
    trace = sites.play(monkeypatch)
    (fault,) = trace.dropped
    assert (fault.client, fault.round) == (1, 1)
    assert reason in fault.reason
    assert trace.costs.outer_samples == (4 + 3) * 3 * 2


@pytest.mark.parametrize("honest", [0, 3])
def test_a_site_that_omits_the_model_of_the_output_step_does_not_count(honest, tmp_path, monkeypatch):
    """Whether it answers first or last."""
    sites = federation_of(tmp_path, rounds=1)
    sites.tampered = {(honest, 0): lambda words, tree: (words, {"shared": tree["shared"]})}
    trace = sites.play(monkeypatch)
    (fault,) = trace.dropped
    assert fault.client == honest
    assert "lacks the model of the output step" in fault.reason
    assert torch.isfinite(trace.output).all()


def test_a_model_that_was_not_asked_for_is_not_taken(tmp_path, monkeypatch):
    """With noise no one may see an iterate without any."""
    sites = federation_of(tmp_path, rounds=1)
    sites.options = {"dp_noise": 1.0, "clip_update": 1.0}
    sites.tampered = {(2, 0): lambda words, tree: (words, tree | {"output": tree["shared"]["x"]})}
    trace = sites.play(monkeypatch)
    assert [fault.client for fault in trace.dropped] == [2]


@pytest.mark.parametrize("codec", ["bfloat16", "int8"])
def test_a_message_of_another_codec_does_not_count(codec, tmp_path, monkeypatch):
    sites = federation_of(tmp_path, rounds=2, send_u=codec)
    sites.tampered = {(1, 1): lambda words, tree: (words, {"shared": tree["shared"] | {"u": tree["shared"]["x"]}})}
    (fault,) = sites.play(monkeypatch).dropped
    assert "other shapes" in fault.reason


def test_a_scale_that_is_not_finite_does_not_count(tmp_path, monkeypatch):
    sites = federation_of(tmp_path, rounds=2, send_u="int8")

    def spoil(words, tree):
        u = tree["shared"]["u"] | {"scale": torch.tensor(float("inf"))}
        return words, tree | {"shared": tree["shared"] | {"u": u}}

    sites.tampered = {(1, 1): spoil}
    (fault,) = sites.play(monkeypatch).dropped
    assert "not finite" in fault.reason


def test_a_site_that_is_not_connected_is_sent_nothing(tmp_path, monkeypatch):
    sites = federation_of(tmp_path, rounds=1)
    x = nbytes(sites.simulated().last)
    assert sites.play(monkeypatch).costs.bytes_down == 4 * 2 * x
    sites.absent = {3}
    assert sites.play(monkeypatch).costs.bytes_down == 3 * 2 * x
