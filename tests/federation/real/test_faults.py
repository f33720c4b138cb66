"""What real sites do wrong: the round goes on with the rest, the site is named, the numbers are those of the rest."""

import subprocess
import time

import pytest

from tests.command_line import BROKE_OFF, FINE, call, read_csv
from tests.federation.real.faults import fault, rounds_of_a_site, seconds_of
from tests.federation.real.local import (
    assert_same,
    checkpointed,
    end,
    final,
    in_background,
    outcomes,
    rounds_in,
    wait_until,
    without,
)

QUADRATIC = ["--problem", "nested_quadratic", "--local-steps", 5, "--algorithm", "Acc-FCSG-M", "--sites", 3]
METHOD = "Acc-FCSG-M"
ITS_ROUND = rounds_of_a_site(1)


def assert_left_out(folder, round, reasons):
    """In the table and in the log by name; the others answered."""
    found, log = outcomes(folder, round), (folder.path / "log.txt").read_text()
    for site, reason in reasons.items():
        assert reason in found.pop(site)
        assert f"round {round}: site {site} is left out: " in log
    assert set(found.values()) == {"answered"}


def test_sites_that_raise_send_nan_huge_numbers_or_other_shapes_or_refuse_are_left_out(record_property, start):
    local = start(*QUADRATIC, "--rounds", 3, "--min-sites", 1, up=False)
    local.misbehave("0", (0, "raise"), (1, "huge"))
    local.misbehave("1", (0, "nan"), (2, "shape"))
    local.misbehave("2", (0, "expire"))
    local.up()
    folder = local.run()
    assert_left_out(folder, 1, {"0": "it raised RuntimeError; its own log says why", "1": "not finite"})
    assert_left_out(folder, 2, {"0": "times as long as the median site's", "2": "refused by policy"})
    assert_left_out(folder, 3, {"1": "other shapes than requested", "2": "refused by policy"})
    assert_same(final(folder, METHOD), without(folder, METHOD, {(0, 0), (1, 0), (0, 1), (2, 1), (1, 2), (2, 2)}))
    why = "the policy expired on 2020-01-31"
    assert f"refused by policy: {why}" in (local.deployment.processes.folder / "site-2.log").read_text()
    assert why not in (folder.path / "log.txt").read_text()
    dropped = {row["client"]: int(row["dropped"]) for row in read_csv(folder.path / "clients.csv")}
    assert dropped == {"0": 2, "1": 2, "2": 2}
    told = "".join(path.read_text() for path in folder.path.glob("*.*") if path.suffix in (".txt", ".csv", ".json"))
    assert "Smith" not in told + (local.deployment.processes.folder / "superlink.log").read_text()
    named, first, second, third = "left out and named", *(seconds_of(folder, round) for round in (1, 2, 3))
    only_type = f"{named}; the coordinator received only the type of the error"
    record_property(*fault("a site raises an error", only_type, ITS_ROUND, first))
    record_property(*fault("a site sends NaN", named, ITS_ROUND, first))
    record_property(*fault("a site sends numbers of 1e12", named, ITS_ROUND, second))
    record_property(*fault("a site sends other shapes", named, ITS_ROUND, third))
    refused = 'left out and named; the coordinator was told "refused by policy", and the site\'s log has the reason'
    record_property(*fault("a site's policy expires after round 1", refused, "that site's other rounds", second))


@pytest.mark.federation
def test_a_supernode_killed_in_a_round_is_left_out_named_and_comes_back_with_its_state(record_property, start):
    local = start(*QUADRATIC, "--rounds", 4, up=False)
    local.misbehave("2", (1, "slow"))
    local.misbehave("0", (2, "hold"))  # until the site is back: the SuperLink refuses a killed node for a minute
    local.up()
    run = in_background(local)
    folder = wait_until(local.begun)
    wait_until(lambda: rounds_in(folder) == 1)
    wait_until(lambda: local.has_misbehaved("2"))  # the second round is under way there
    local.kill_node("2")
    wait_until(lambda: local.connections("2") >= 2)
    local.let_go("0")
    assert end(run) == FINE
    lost = "its connection was lost"
    told = [outcomes(folder, round)["2"] for round in range(1, 5)]
    assert told[0] == "answered"
    assert lost in told[1]
    assert told[-1] == "answered", told
    away = {(2, round) for round, outcome in enumerate(told) if outcome != "answered"}
    assert_same(final(folder, METHOD), without(folder, METHOD, away))
    assert "site 2 is left out: its connection was lost" in (folder.path / "log.txt").read_text()
    back = "detected by Flower; the site came back with the same node id and its local state"
    missed = rounds_of_a_site(len(away))
    record_property(*fault("a SuperNode is killed during a round", back, missed, seconds_of(folder, 2)))


@pytest.mark.federation
def test_a_site_whose_executor_is_killed_in_a_round_is_left_out_and_comes_back_with_its_state(record_property, start):
    local = start(*QUADRATIC, "--rounds", 4, up=False)
    local.misbehave("2", (1, "slow"))
    local.misbehave("0", (2, "hold"))
    local.up()
    run = in_background(local)
    folder = wait_until(local.begun)
    wait_until(lambda: local.has_misbehaved("2"))
    local.kill_executor("2")
    wait_until(lambda: local.connections("2") >= 2)
    local.let_go("0")
    assert end(run) == FINE
    told = [outcomes(folder, round)["2"] for round in range(1, 5)]
    assert told[0] == told[-1] == "answered", told
    assert told[1] != "answered"
    away = {(2, round) for round, outcome in enumerate(told) if outcome != "answered"}
    assert_same(final(folder, METHOD), without(folder, METHOD, away))
    back, missed = "SuperNode and executor restarted; back with its local state", rounds_of_a_site(len(away))
    record_property(*fault("a site's executor is killed during a round", back, missed, seconds_of(folder, 2)))


@pytest.mark.federation
def test_a_client_process_that_dies_is_left_out_and_back_in_the_next_round(record_property, start):
    local = start(*QUADRATIC, "--rounds", 2, "--round-seconds", 400, up=False)
    local.misbehave("1", (0, "die"))
    local.up()
    folder = local.run()
    assert_left_out(folder, 1, {"1": "its app's process died"})
    assert_left_out(folder, 2, {})
    assert_same(final(folder, METHOD), without(folder, METHOD, {(1, 0)}))
    back = "detected by Flower; the site answered in the next round"
    record_property(*fault("a site's client process dies", back, ITS_ROUND, seconds_of(folder, 1)))


@pytest.mark.federation
def test_a_site_that_never_answers_meets_the_deadline_and_can_come_back(record_property, start):
    local = start(*QUADRATIC, "--rounds", 3, "--round-seconds", 100, up=False)
    local.misbehave("1", (0, "sleep"))
    local.up()
    folder = local.run()
    assert_left_out(folder, 1, {"1": "no answer in time"})
    told = [outcomes(folder, round)["1"] for round in range(1, 4)]
    assert told[-1] == "answered", told
    away = {(1, round) for round, outcome in enumerate(told) if outcome != "answered"}
    assert_same(final(folder, METHOD), without(folder, METHOD, away))
    back = "the round went on after the deadline of 100 s; the site's process ended, and the site came back"
    missed = rounds_of_a_site(len(away))
    record_property(*fault("a site never answers", back, missed, seconds_of(folder, 1, 2)))


@pytest.mark.federation
def test_with_too_few_sites_it_waits_says_so_and_stops_with_a_checkpoint(record_property, start):
    options = ["--rounds", 3, "--min-sites", 3, "--wait-seconds", 60, "--round-seconds", 200]
    local = start(*QUADRATIC, *options, up=False)
    local.misbehave("0", (1, "slow"))
    local.up()
    run = in_background(local)
    folder = wait_until(local.begun)
    wait_until(lambda: rounds_in(folder) == 1)
    local.stop_site("1")
    assert end(run) == BROKE_OFF
    assert folder.status == "interrupted"
    said = (folder.path / "log.txt").read_text()
    assert "2 of 3 sites are connected, 3 needed, missing 1" in said
    local.deployment.start_site("1")
    local.resume(folder)
    assert_same(final(folder, METHOD), without(folder, METHOD, set()))
    said = "the missing site was named; after 60 s it stopped as `interrupted` with a checkpoint; resumed"
    record_property(*fault("fewer than `min_sites` (a site left after round 1)", said))


@pytest.mark.federation
def test_after_the_superlink_was_killed_a_resumed_run_ends_as_an_undisturbed_one(record_property, start):
    local = start(*QUADRATIC, "--rounds", 4)
    run = in_background(local)
    folder = wait_until(local.begun)
    wait_until(lambda: rounds_in(folder) == 2)
    time.sleep(2)
    local.kill_superlink()
    assert end(run) == BROKE_OFF
    port = local.deployment.address()["port"]
    local.deployment.start_superlink(port=port)  # the same database: keys stay registered
    local.resume(folder)
    assert folder.status == "done"
    assert rounds_in(folder) == 4
    assert_same(final(folder, METHOD), without(folder, METHOD, set()))
    ended, repeated = (
        "the coordinator's app ended, sites reconnected; resumed",
        "the round in progress, which was repeated",
    )
    record_property(*fault("the SuperLink is killed after round 2 of 4, then restarted", ended, repeated))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own for a folder, which can be made larger."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "none", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("needs the right to mount a small disk (run as root)")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.federation
def test_when_the_coordinators_disk_is_full_it_stops_and_goes_on_once_there_is_space(
    record_property, start, small_disk
):
    local = start(*QUADRATIC, "--rounds", 4, "--dimension", 6000, up=False)
    local.set(out=str(small_disk))
    local.up()
    outcome = call("flower", "run", local.deployment.folder)
    assert outcome.code == BROKE_OFF
    assert "the disk is full" in outcome.out
    folder = local.newest()
    assert 0 < checkpointed(folder) < 4
    subprocess.run(["mount", "-o", "remount,size=50m", small_disk], check=True)
    local.resume(folder)
    assert folder.status == "done"
    assert_same(final(folder, METHOD), without(folder, METHOD, set()))
    stopped = "stopped with an intact checkpoint, and said that the disk is full; resumed once there was space"
    record_property(
        *fault("the coordinator's disk is full during a run", stopped, "the round in progress, which was repeated")
    )
