"""Policies at work, without processes: what leaves a site under them, and what the coordinator is told."""

import math

import pytest
import torch

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from fedcso.core.tree import named_leaves
from fedcso.federation import client
from fedcso.federation.aggregation import update_norm
from fedcso.federation.request import Order
from fedcso.federation.wire import pack, unpack
from tests.federation.in_process import Sites, allow

SETTINGS = {
    "command": "flower",
    "problem": "nested_quadratic",
    "clients": 3,
    "algorithm": ["FCSG-M"],
    "learning_rate": 0.05,
    "rounds": 3,
    "local_steps": 5,
    "outer_batch": 2,
    "inner_batch": 3,
    "estimator": "plain",
}
BEFORE = {"x": torch.full((3,), 3.0, dtype=torch.float64), "u": torch.zeros(3, dtype=torch.float64)}


def answered(folder, settings=SETTINGS, kind=client.train, shared=BEFORE, **more):
    """What site 1 answers to a request for round 1."""
    order = Order(settings, ["0", "1", "2"], run="run", algorithm=settings["algorithm"][0], client=1, round=1, **more)
    node = {"site": "1", "folder": str(folder)}
    return unpack(client.respond(kind, pack(order.words(), {"shared": shared, "x": shared["x"]}), node, folder))


def test_a_refusal_is_named_in_the_log_and_nothing_but_the_refusal_is_told(tmp_path, caplog):
    allow(tmp_path, SETTINGS)
    assert "shared" in answered(tmp_path)[1]
    for kind in (client.describe, client.train, client.evaluate, client.count):
        caplog.clear()
        said, tree = answered(tmp_path, SETTINGS | {"weight_decay": 0.5}, kind)
        assert (said, tree) == ({"site": "1", "refused": "refused by policy"}, ())
        assert "refused by policy: weight_decay = 0.5 is not allowed" in caplog.text


@pytest.mark.parametrize("written", [None, "colour = 'red'", "expires = 2020-01-01", "="])
def test_without_a_policy_that_can_be_used_a_site_refuses(tmp_path, written):
    if written is not None:
        (tmp_path / "site.toml").write_text(written)
    assert answered(tmp_path)[0] == {"site": "1", "refused": "refused by policy"}


def test_a_refusing_site_is_left_out_and_the_round_goes_on(tmp_path, monkeypatch):
    sites = Sites(tmp_path, dict(SETTINGS), policies={1: {"max_rounds": 2}})
    trace = sites.play(monkeypatch)
    assert [row["outcome"] for row in sites.rows] == ["answered", "refused by policy", "answered"] * 3
    assert torch.isfinite(trace.last).all()


def test_an_update_is_clipped_and_all_else_is_as_without(tmp_path):
    allow(tmp_path, SETTINGS)
    free = answered(tmp_path)[1]["shared"]
    norm = update_norm(BEFORE, free)
    allow(tmp_path, SETTINGS, clip=norm / 4)
    held = answered(tmp_path)[1]["shared"]
    assert update_norm(BEFORE, held) == pytest.approx(norm / 4)
    for (_, before), (_, a), (_, b) in zip(named_leaves(BEFORE), named_leaves(free), named_leaves(held), strict=True):
        torch.testing.assert_close((a - before) / 4, b - before)


@pytest.mark.parametrize(("kind", "sites", "deviation"), [("local", 1, 2.0), ("distributed", 4, 1.0)])
def test_the_noise_has_the_deviation_that_the_policy_asks_for(tmp_path, kind, sites, deviation):
    large = {name: torch.zeros(20_000, dtype=torch.float64) for name in BEFORE}
    settings = SETTINGS | {"dimension": 20_000}
    allow(tmp_path, settings, clip=0.5, noise=4.0, gaussian=kind, sites=sites)
    said, tree = answered(tmp_path, settings, shared=large)
    assert said["train_loss"] is None  # it has no noise, so it does not leave
    for part in tree["shared"].values():
        assert float(part.std()) == pytest.approx(deviation, rel=0.03)
    again = answered(tmp_path, settings, shared=large)[1]
    assert not torch.equal(again["shared"]["x"], tree["shared"]["x"])  # not drawn from the run's seed


def test_the_model_of_the_output_step_is_protected_too(tmp_path):
    allow(tmp_path, SETTINGS, clip=1e-3, noise=1.0)
    output = answered(tmp_path, output_step=7)[1]["output"]
    assert 0 < float((output - BEFORE["x"]).norm()) < 0.1


def test_scores_of_single_rows_are_not_sent_where_updates_must_be_protected(tmp_path, caplog):
    settings = SETTINGS | {"problem": "auprc", "algorithm": ["FeDXL2"]}
    del settings["learning_rate"]
    allow(tmp_path, settings, clip=1.0)
    assert answered(tmp_path, settings)[0]["refused"] == "refused by policy"
    assert "of single rows" in caplog.text


def test_with_withheld_losses_the_curve_is_that_of_the_others_or_undefined(tmp_path, monkeypatch):
    noisy = {"clip": 1.0, "noise": 0.01}
    some = Sites(tmp_path / "some", dict(SETTINGS), policies={1: noisy}).play(monkeypatch)
    assert all(math.isfinite(row["train_loss"]) for row in some.rows[1:])
    none = Sites(tmp_path / "none", dict(SETTINGS), policies=dict.fromkeys(range(3), noisy)).play(monkeypatch)
    assert all(math.isnan(row["train_loss"]) for row in none.rows[1:])
