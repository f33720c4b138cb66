"""Keys are replaced and sites removed while a run is in progress: it goes on, and the old keys are refused."""

import shutil

import pytest

from tests.command_line import FINE, call
from tests.federation.real.faults import fault, rounds_of_a_site
from tests.federation.real.local import (
    assert_same,
    end,
    final,
    in_background,
    outcomes,
    rounds_in,
    wait_until,
    without,
)
from tests.federation.real.test_security import refused

QUADRATIC = ["--problem", "nested_quadratic", "--local-steps", 5, "--algorithm", "Acc-FCSG-M", "--sites", 3]
METHOD = "Acc-FCSG-M"


def under_way(start, rounds):
    """A run in the background whose second round is in progress until site 0 is let go."""
    local = start(*QUADRATIC, "--rounds", rounds, up=False)
    local.misbehave("0", (1, "hold"))
    local.up()
    run = in_background(local)
    folder = wait_until(local.begun)
    wait_until(lambda: rounds_in(folder) >= 1)
    return local, run, folder


def kept_key(local, site, tmp_path):
    """A copy of a site's key, as the site would have it."""
    return shutil.copy(local.deployment.site_key(site), tmp_path / "kept-key")


def assert_refused(local, tmp_path, key):
    code, said = refused(local, tmp_path, local.deployment.keys / "ca.crt", key)
    assert code != 0
    assert "SuperNode ID" not in said, said


def told(folder, rounds, site):
    """Whether a site's answer was used, round by round."""
    return [outcomes(folder, round)[site] for round in range(1, rounds + 1)]


def assert_as_if_absent(folder, site, told):
    away = {(int(site), round) for round, outcome in enumerate(told) if outcome != "answered"}
    assert_same(final(folder, METHOD), without(folder, METHOD, away))


@pytest.mark.federation
def test_a_site_is_removed_in_the_middle_of_a_run_which_goes_on_with_the_rest(record_property, start, tmp_path):
    local, run, folder = under_way(start, 4)
    key = kept_key(local, "2", tmp_path)
    assert call("flower", "keys", local.deployment.folder, "--rotate").code == FINE  # of the coordinator; no one minds
    removed = call("flower", "remove", local.deployment.folder, "2")
    assert removed.code == FINE, removed.err
    assert "removed 2; its key is refused. Left: 0, 1" in removed.out
    local.let_go("0")
    assert end(run) == FINE
    found = told(folder, 4, "2")
    assert found[0] == "answered"
    assert found[-1] == "not connected"
    assert_as_if_absent(folder, "2", found)
    assert all(set(told(folder, 4, site)) == {"answered"} for site in "01")
    assert_refused(local, tmp_path, key)
    local.deployment.processes.stop()
    local.up("--sites", 0)  # a new SuperLink refuses it too, and no new key is made for it
    assert not local.deployment.public_key("2").exists()
    assert_refused(local, tmp_path, key)
    again = call("flower", "remove", local.deployment.folder, "2")
    assert again.code != FINE
    assert "unknown site '2'" in again.err
    replaced = "nobody was left out; new connections got the new one"
    record_property(*fault("the coordinator's certificate is replaced in round 2 of 4", replaced))
    rest = "the run went on with the others; the site's key was refused, after a restart too"
    record_property(*fault("a site is removed in round 2 of 4", rest, "that site's other rounds"))


@pytest.mark.federation
def test_a_sites_key_is_replaced_in_the_middle_of_a_run_and_the_site_comes_back_with_its_state(
    record_property, start, tmp_path
):
    local, run, folder = under_way(start, 4)
    key = kept_key(local, "2", tmp_path)
    replaced = call("flower", "keys", local.deployment.folder, "--rotate", "--site", "2")
    assert replaced.code == FINE, replaced.err
    wait_until(lambda: local.connections("2") >= 2)
    local.let_go("0")
    assert end(run) == FINE
    found = told(folder, 4, "2")
    assert found[0] == found[-1] == "answered", found
    assert_as_if_absent(folder, "2", found)
    assert "lost its local state" not in (folder.path / "log.txt").read_text()
    assert_refused(local, tmp_path, key)
    back, missed = "the old key was refused; the site came back with its state", len(found) - found.count("answered")
    record_property(*fault("a site's key is replaced in round 2 of 4", back, rounds_of_a_site(missed)))
