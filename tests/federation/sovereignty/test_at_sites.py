"""Policies at work, without processes: what leaves a site under them, and what the coordinator is told."""

import math

import pytest
import torch

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from fedcso.core.tree import named_leaves
from fedcso.federation import client
from fedcso.federation.aggregation import update_norm
from fedcso.federation.request import Order
from fedcso.federation.sovereignty.audit import faults, messages_in
from fedcso.federation.sovereignty.update import epsilon
from fedcso.federation.wire import outline, pack, unpack
from tests.command_line import BAD_INPUT, BROKE_OFF, FINE, call
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


def replied(folder, settings=SETTINGS, kind=client.train, shared=BEFORE, **more):
    """The answer of site 1 to a request for round 1."""
    order = Order(settings, ["0", "1", "2"], run="run", algorithm=settings["algorithm"][0], client=1, round=1, **more)
    node = {"site": "1", "folder": str(folder)}
    return client.respond(kind, pack(order.words(), {"shared": shared, "x": shared["x"]}), node, folder)


def answered(*arguments, **more):
    """What it says and sends."""
    return unpack(replied(*arguments, **more))


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


# --------------------------------------------------------------------------------------- the record


def test_every_answer_is_in_the_record_with_what_it_was(tmp_path):
    allow(tmp_path, SETTINGS, clip=0.01)
    kinds = (client.describe, client.train, client.evaluate, client.count)
    contents = [replied(tmp_path, SETTINGS, kind) for kind in kinds]
    contents.append(replied(tmp_path, SETTINGS | {"rounds": 99}))
    lines = messages_in(tmp_path)
    assert [line["kind"] for line in lines] == ["describe", "train", "evaluate", "count", "train"]
    for line, content in zip(lines, contents, strict=True):
        assert {name: line[name] for name in ("shapes", "bytes", "digest")} == outline(content)
        assert (line["run"], line["round"]) == ("run", 1)
    assert lines[1]["shapes"] == [[3], [3]]
    (update,) = lines[1]["updates"]
    assert update["norm"] > update["clipped"] == pytest.approx(0.01)
    assert update["noise"] == 0
    assert lines[3]["refused"].startswith("it raised")  # this problem has no scores to count
    assert lines[4]["refused"] == "refused by policy"
    assert faults(tmp_path) == []


def test_the_norms_stay_at_the_site(tmp_path):
    allow(tmp_path, SETTINGS, clip=0.01)
    said, _ = answered(tmp_path)
    assert set(said) == {"site", "costs", "train_loss", "seconds", "forgot"}


def test_what_cant_be_recorded_does_not_leave(tmp_path, monkeypatch, caplog):
    allow(tmp_path, SETTINGS)
    answered(tmp_path)
    (tmp_path / "sent.jsonl").write_text("")
    assert answered(tmp_path) == ({"site": "1", "refused": "refused by policy"}, ())
    assert "was changed; see: fedcso flower audit" in caplog.text

    def full(*arguments):
        raise OSError("no space left on device")

    monkeypatch.setattr(client, "record", full)
    assert answered(tmp_path) == ({"site": "1", "refused": "refused by policy"}, ())


def test_updates_end_when_the_sites_account_is_exhausted_whatever_the_run(tmp_path):
    allow(tmp_path, SETTINGS, clip=1.0, noise=4.0, max_epsilon=3.0)
    outcomes = ["refused" in answered(tmp_path, seed=n)[0] for n in range(6)]
    assert outcomes == sorted(outcomes)
    assert 0 < outcomes.count(False) < 6
    assert epsilon(outcomes.count(False) / 4, 1e-5) <= 3 < epsilon((outcomes.count(False) + 1) / 4, 1e-5)


def test_the_audit_is_for_people(tmp_path):
    allow(tmp_path, SETTINGS, clip=1.0, noise=4.0)
    for _ in range(2):
        answered(tmp_path)
    answered(tmp_path, SETTINGS | {"rounds": 99})
    outcome = call("flower", "audit", tmp_path)
    assert outcome.code == FINE
    assert "verified 3 messages" in outcome.out
    assert f"ε = {epsilon(2 / 4, 1e-5):.3g} at δ = 1e-05" in outcome.out
    assert "1 × refused by policy" in outcome.out
    lines = (tmp_path / "sent.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "sent.jsonl").write_text(lines[0] + lines[2])
    found = call("flower", "audit", tmp_path)
    assert found.code == BROKE_OFF
    assert "FAULT    before line 3: lines after 1 were removed" in found.out
    nothing = call("flower", "audit", tmp_path / "none")
    assert nothing.code == BAD_INPUT
    assert "this site has sent nothing" in nothing.err
