"""Secure sums over sites without processes: the numbers, dropouts, garbage, and what a curious coordinator gets."""

import json
import math
import stat
from dataclasses import replace

import pytest
import torch

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from fedcso.core.tree import leaves, map_leaves, named_leaves
from fedcso.engines.job import Job
from fedcso.federation import client, rounds
from fedcso.federation.options import Federation
from fedcso.federation.privacy import statement
from fedcso.federation.request import Order
from fedcso.federation.secure import answers
from fedcso.federation.secure.fixed_point import Ranges, encode, exponent
from fedcso.federation.secure.revealed import Revealed
from fedcso.federation.secure.terms import settings_digest
from fedcso.federation.site import Site
from fedcso.federation.sovereignty.audit import messages_in
from fedcso.federation.wire import unpack
from fedcso.runs.callbacks import Interrupted
from tests.federation.in_process import HANDLERS
from tests.federation.secure.securely import SETTINGS, SecureSites
from tests.hostile.answers import Hostile

TABLES = {"problem": "auprc", "data": "digits", "net": "linear", "weights": "size"}
STAGES = ["secure_keys", "secure_shares", "secure_update", "secure_confirm", "secure_reveal"]


@pytest.fixture
def encoded(monkeypatch):
    """What each site has encoded before it was masked, in the order of the sites' answers."""
    found = []

    def note(tree, ranges, sites, weight=1.0):
        found.append((encode(tree, ranges, sites, weight), [leaf.dtype for leaf in leaves(tree)], weight))
        return found[-1][0]

    monkeypatch.setattr(answers, "encode", note)
    return found


def plain_mean(encoded, sites, ranges="65536"):
    """The mean of fixed-point numbers in Python's whole numbers, without masks: {path: numbers}."""
    trees, dtypes, weights = zip(*encoded, strict=True)
    means = {}
    for place, (path, leaf) in enumerate(named_leaves(trees[0])):
        columns = zip(*(leaves(tree)[place].reshape(-1).tolist() for tree in trees), strict=True)
        step = 2.0 ** exponent(Ranges.parse(ranges).of(path.partition(".")[2]), sites)
        numbers = [float(sum(column)) * step / sum(weights) for column in columns]
        means[path] = torch.tensor(numbers, dtype=torch.float64).to(dtypes[0][place]).reshape(leaf.shape)
    return means


def assert_bit_for_bit(shared, means):
    for path, leaf in named_leaves({"shared": shared}):
        assert torch.equal(leaf, means[path]), path


def of(folder, clients=3, rounds=1, **settings):
    """A federation that does not repeat rounds for long."""
    config = SETTINGS | {"clients": clients, "rounds": rounds} | settings
    return SecureSites(folder, config, options={"wait_seconds": 1e-9})


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(rounds, "AGAIN_SECONDS", 0.0)


def stopped(sites, monkeypatch, **more):
    """Why a run ends without a round."""
    with pytest.raises(Interrupted) as reason:
        sites.play(monkeypatch, **more)
    return str(reason.value)


def outcome(sites, site):
    return [row["outcome"] for row in sites.rows if row["site"] == str(site)]


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": ["FCSG-M"], "send_u": "every(2)"},
        {"algorithm": ["Local-SCGDM"], "send_u": "inferred", "participation": 3, "clients": 4},
        {"algorithm": ["FedAdam(base=Acc-FCSG-M)"]},
    ],
    ids=lambda settings: settings["algorithm"][0],
)
def test_a_run_is_the_simulation_to_the_stated_precision(settings, tmp_path, monkeypatch):
    sites = of(tmp_path, rounds=2, **settings)
    found, expected = sites.play(monkeypatch), sites.simulated()
    for a, b in zip(leaves([found.shared, found.output]), leaves([expected.shared, expected.output]), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-11)
    assert [row["train_loss"] for row in found.rows[1:]] == pytest.approx([r["train_loss"] for r in expected.rows[1:]])
    assert replace(found.costs, bytes_up=0) == replace(expected.costs, bytes_up=0)
    assert {row["outcome"] for row in sites.rows} == {"answered"}


@pytest.mark.parametrize("settings", [{}, TABLES], ids=["x and u", "by size"])
def test_the_mean_is_the_plain_one_of_fixed_point_numbers_bit_for_bit(settings, tmp_path, monkeypatch, encoded):
    sites = of(tmp_path, **settings)
    trace = sites.play(monkeypatch)
    assert_bit_for_bit(trace.shared, plain_mean(encoded, sites=3))
    assert len({weight for *_, weight in encoded}) == (3 if settings else 1)


def test_sites_that_count_by_size_load_their_tables_once_for_an_update(tmp_path, monkeypatch):
    sites, loaded, load = of(tmp_path, **TABLES), [], Site.holding
    monkeypatch.setattr(Site, "holding", lambda site, *told: loaded.append(site.name) or load(site, *told))
    sites.play(monkeypatch)
    assert sorted(loaded) == sites.names


@pytest.mark.parametrize("stage", STAGES)
def test_a_site_that_drops_out_is_left_out_before_it_has_sent_and_recovered_afterwards(
    stage, tmp_path, monkeypatch, encoded
):
    sites = of(tmp_path)
    sites.lost = {(1, stage)}
    trace = sites.play(monkeypatch)
    in_sum = stage in ("secure_confirm", "secure_reveal")
    assert outcome(sites, 1) == ["answered" if in_sum else "no answer in time"]
    assert [fault.client for fault in trace.dropped] == ([] if in_sum else [1])
    assert len(encoded) == (3 if in_sum else 2)
    assert_bit_for_bit(trace.shared, plain_mean(encoded, sites=3))


@pytest.mark.parametrize("stage", STAGES[2:])
def test_below_the_threshold_there_is_no_sum_and_the_model_stays(stage, tmp_path, monkeypatch):
    sites = of(tmp_path)
    sites.lost = {(1, stage), (2, stage)}
    why = "1 sites revealed shares, and 2 are needed" if stage == "secure_reveal" else "only 1 sites have"
    assert why in stopped(sites, monkeypatch)


def test_min_sites_may_ask_for_more_than_the_threshold(tmp_path, monkeypatch):
    sites = of(tmp_path)
    sites.lost = {(1, "secure_update")}
    sites.options |= {"min_sites": 3}
    assert "only 2 sites have sent masked updates, and a secure sum needs 3" in stopped(sites, monkeypatch)


def random_numbers(words, tree):
    return words, map_leaves(lambda leaf: torch.randint(-(2**62), 2**62, leaf.shape), tree)


def with_boxes(content):
    return lambda words, tree: (words | {"boxes": dict.fromkeys(words["boxes"], content)}, tree)


def flipped_shares(words, tree):
    shares = {site: f"{int(share, 16) ^ 1:0{len(share)}x}" for site, share in words["shares"].items()}
    return words | {"shares": shares}, tree


@pytest.mark.parametrize(
    ("stage", "garbage", "named"),
    [
        ("secure_keys", lambda w, t: (w | {"box": "02"}, t), "its keys can't be read"),
        ("secure_shares", lambda w, t: (w | {"boxes": {}}, t), "its shares are incomplete"),
        ("secure_shares", with_boxes("00"), "other sites can't open its shares"),
        ("secure_update", lambda w, t: (w | {"masked_with": ["1"]}, t), "it can't open the shares of all sites"),
        ("secure_update", lambda w, t: (w, map_leaves(lambda leaf: leaf.double(), t)), "numbers of another type"),
        ("secure_update", lambda w, t: (w, {"shared": t["shared"]}), "its masked update is incomplete"),
        ("secure_update", lambda w, t: (w, t | {"more": t["scalars"]}), "its masked update is incomplete"),
        ("secure_update", lambda w, t: (w | {"dtypes": ["F32"] * len(w["dtypes"])}, t), "other shapes than requested"),
        ("secure_update", lambda w, t: (w | {"costs": {}}, t), "its answer is incomplete"),
        ("secure_update", lambda w, t: (w, dict(reversed(t.items()))), "other shapes than requested"),
    ],
)
def test_garbage_is_named_and_the_sum_is_that_of_the_rest(stage, garbage, named, tmp_path, monkeypatch, encoded):
    sites = of(tmp_path)
    sites.after = {(1, stage): garbage}
    trace = sites.play(monkeypatch)
    assert named in outcome(sites, 1)[0]
    rest = [one for n, one in enumerate(encoded) if len(encoded) == 2 or n != 1]
    assert_bit_for_bit(trace.shared, plain_mean(rest, sites=3))


def test_random_numbers_in_the_right_form_give_no_model(tmp_path, monkeypatch):
    sites = of(tmp_path)
    sites.after = {(1, "secure_update"): random_numbers}
    assert "is outside what updates within the ranges can give" in stopped(sites, monkeypatch)


def test_changed_shares_are_not_used_and_named(tmp_path, monkeypatch, caplog, encoded):
    sites = of(tmp_path)
    sites.after = {(1, "secure_reveal"): flipped_shares}
    assert_bit_for_bit(sites.play(monkeypatch).shared, plain_mean(encoded, sites=3))
    assert "site 1 is in the sum, but does not help to reveal it: its share of a secret of site 0 is not" in caplog.text


def test_an_overflow_is_told_and_nothing_is_wrapped(tmp_path, monkeypatch):
    sites = of(tmp_path)
    sites.options |= {"secure_range": "1e-3"}
    sites.config |= {"secure_range": "1e-3"}
    assert "only 0 sites have sent masked updates" in stopped(sites, monkeypatch)
    assert outcome(sites, 0) == ["a number of x is outside the range ±0.001: set a larger secure_range for x"]


def test_the_coordinator_is_told_nothing_of_a_single_update(tmp_path, monkeypatch, encoded):
    sites = of(tmp_path)
    sites.play(monkeypatch)
    masked = [unpack(answer) for _, kind, _, answer in sites.seen if kind == "secure_update"]
    for (words, tree), (whole, *_) in zip(masked, encoded, strict=True):
        assert set(words) == {"site", "costs", "seconds", "forgot", "dtypes", "masked_with"}
        assert all(not torch.equal(a, b) for a, b in zip(leaves(tree), leaves(whole), strict=True))
    assert {row["norm"] for row in sites.rows} == {""}
    kinds = [message["kind"] for message in messages_in(tmp_path / "0")]
    assert kinds == STAGES


def test_secrets_are_for_the_owner_only_and_gone_at_the_end(tmp_path, monkeypatch):
    sites = of(tmp_path)
    place, modes = tmp_path / "0" / "secure" / "run" / "seed0", []
    sites.before = {
        (0, stage): lambda *content: (modes.append(stat.S_IMODE((place / "session.json").stat().st_mode)), content)[1]
        for stage in STAGES[1:]
    }
    sites.play(monkeypatch)
    assert modes == [0o600] * 4
    assert [path.name for path in place.iterdir()] == ["revealed.json"]


def test_updates_are_clipped_at_the_sites_and_noise_is_added_to_the_mean(tmp_path, monkeypatch, encoded):
    sites = of(tmp_path, weights="uniform")
    sites.config |= {"clip_update": 0.25, "dp_noise": 2.0}
    sites.options |= {"clip_update": 0.25, "dp_noise": 2.0}
    trace = sites.play(monkeypatch)
    for name in sites.names:
        (update,) = [line["updates"][0] for line in messages_in(tmp_path / name) if "updates" in line]
        assert update["norm"] > 0.25
        assert update["clipped"] == pytest.approx(0.25)
    mean = plain_mean(encoded, sites=3)
    off = torch.cat([trace.shared[name] - mean[f"shared.{name}"] for name in ("x", "u")])
    assert 0 < off.abs().max() < 6 * 2.0 * 0.25 / 3
    told = json.loads(statement(Federation(**sites.options), [trace], sites.rows))
    assert told["sites"]["0"]["clipped"] is None
    assert told["sites"]["0"]["smallest_noise"] == pytest.approx(1 / 6, rel=1e-5)


def with_words(change):
    return lambda words, tree: (change(words), tree)


def another_model(words, tree):
    return words, {"shared": tree["shared"] | {"x": tree["shared"]["x"] + 1}}


def saying(**changes):
    return with_words(lambda words: words | {"secure": words["secure"] | changes})


def in_terms(**changes):
    return lambda words, tree: saying(terms=words["secure"]["terms"] | changes)(words, tree)


@pytest.mark.parametrize(
    ("stage", "attack", "why"),
    [
        ("secure_update", another_model, "the model is not the one in the terms of the sum"),
        ("secure_keys", with_words(lambda w: w | {"seed": 7}), "the terms of the sum are not those of the message"),
        ("secure_keys", in_terms(threshold=1), "a sum over 1 sites is too small"),
        ("secure_keys", in_terms(sites=["1"], weights=[1.0]), "more than half"),
        ("secure_shares", in_terms(round=1), "the terms of the sum are not those of the message"),
        ("secure_shares", in_terms(session="other"), "a message of another sum"),
        ("secure_confirm", saying(survivors=["1"]), "a sum over 1 sites was asked for"),
        ("secure_reveal", saying(signatures={}), "a sum over 0 sites was asked for"),
    ],
)
def test_what_a_curious_coordinator_asks_of_one_site_is_refused(stage, attack, why, tmp_path, monkeypatch, caplog):
    sites = of(tmp_path)
    sites.before = {(1, stage): attack}
    sites.play(monkeypatch)
    assert (1, stage) in sites.refusals()
    assert f"refused by policy: {why}" in caplog.text or why in caplog.text
    told = [unpack(answer)[0] for node, kind, _, answer in sites.seen if (node, kind) == (1, stage)]
    assert told == [{"site": "1", "refused": "refused by policy"}]


def test_weights_that_single_out_a_site_are_refused(tmp_path, monkeypatch, caplog):
    sites = of(tmp_path)
    monkeypatch.setattr(Job, "weights", lambda job, clients: [1e9 if n == 1 else 1.0 for n in clients])
    assert "only 0 sites have sent masked updates" in stopped(sites, monkeypatch)
    assert "sites count differently, and this one has the size None, but the terms of the sum say 1.0" in caplog.text


def test_other_settings_for_other_sites_are_found_out(tmp_path, monkeypatch, caplog):
    """A tiny learning rate would make the updates of all sites but one known."""
    sites = of(tmp_path)

    def without_learning(words, tree):
        words = words | {"config": words["config"] | {"learning_rate": 1e-12}}
        return in_terms(settings=settings_digest(Order.read(words)))(words, tree)

    sites.before = {(n, stage): without_learning for n in (0, 2) for stage in STAGES}
    sites.play(monkeypatch)
    assert {node for node, kind, *_ in sites.seen if kind == "secure_update"} == {0, 2}  # their sum is known anyway
    assert (1, "secure_shares") in sites.refusals()
    assert "has not signed what this site was told" in caplog.text


def test_every_message_is_answered_once(tmp_path, monkeypatch, caplog):
    sites = of(tmp_path)
    sites.play(monkeypatch)
    for node, kind, content, _ in list(sites.seen):
        said = unpack(client.respond(HANDLERS[f"train.{kind}"], content, sites.node_config(node), tmp_path))[0]
        assert said == {"site": str(node), "refused": "refused by policy"}
    assert "a message of a sum that is revealed already" in caplog.text
    assert "a message that was answered before, or out of order" in caplog.text


def test_a_round_is_repeated_with_the_same_sites_only(tmp_path, monkeypatch, caplog):
    """The difference of the sums over three sites and over two would be an update."""
    sites = of(tmp_path)
    first = sites.play(monkeypatch)
    sites.lost = {(2, "secure_update")}
    why = stopped(sites, monkeypatch)
    assert why == "round 1: the sum over 0, 1, 2 was revealed, so it can only be repeated with all of these"
    sites.absent = {2}
    assert "a sum with 2 was revealed, so it can only be repeated with all its sites" in stopped(sites, monkeypatch)
    sites.absent, sites.revealed = set(), Revealed()  # a coordinator that does not mind
    assert "only 0 sites have confirmed the list" in stopped(sites, monkeypatch)
    assert "the sum of round 1 over 0, 1, 2 is revealed; with one over 0, 1, single updates" in caplog.text
    sites.lost = set()
    again = sites.play(monkeypatch)
    assert all(torch.equal(a, b) for a, b in zip(leaves(first.shared), leaves(again.shared), strict=True))


def test_what_was_revealed_is_noted_in_the_run_folder(tmp_path):
    Revealed(tmp_path).note("run", 3, ["0", "1"])
    found = Revealed(tmp_path)
    assert found.sites("run", 3) == ["0", "1"]
    assert found.sites("run", 4) == found.sites("other", 3) == []


@pytest.mark.parametrize("missing", ["key", "peer", "another peer"])
def test_a_site_that_does_not_know_the_others_refuses(missing, tmp_path, monkeypatch, caplog):
    sites = of(tmp_path)
    path = {"key": tmp_path / "keys" / "1"}.get(missing, tmp_path / "1" / "peers" / "2.pub")
    if missing == "another peer":
        path.write_bytes((tmp_path / "keys" / "0.pub").read_bytes())
    else:
        path.unlink()
    sites.play(monkeypatch)
    wrong = missing == "another peer"
    assert outcome(sites, 1) == ["it deals shares to others than most sites do" if wrong else "refused by policy"]
    assert ("peers/2.pub is not the key of site 2" if wrong else f"{path} is missing") in caplog.text


def test_a_site_that_withholds_its_loss_counts_without(tmp_path, monkeypatch):
    sites = of(tmp_path, rounds=1)
    sites.policies = {1: {"clip": 1e6, "noise": 1e-9}}
    trace = sites.play(monkeypatch)
    assert math.isfinite(trace.rows[-1]["train_loss"])


def test_a_hostile_site_says_nothing_that_stops_the_coordinator(tmp_path, monkeypatch):
    sites = of(tmp_path)
    sites.play(monkeypatch)
    honest = {kind: answer for node, kind, _, answer in sites.seen if node == 1}
    for number in range(10):
        stage = STAGES[number % 5]
        content = Hostile(5, number, [honest[stage]]).content()
        sites = of(tmp_path / f"again{number}")
        sites.replaced = {(1, stage): content}
        trace = sites.play(monkeypatch)
        assert all(torch.isfinite(leaf).all() for leaf in leaves(trace.shared))
        assert {n: outcome(sites, n) for n in (0, 2)} == {0: ["answered"], 2: ["answered"]}
