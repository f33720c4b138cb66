"""Secure sums over real sites: the simulation's numbers, whatever sites do, and nothing for a curious coordinator."""

import shutil
from pathlib import Path

import pytest
import torch

from fedcso.core.tree import leaves
from fedcso.federation.sovereignty.audit import faults, messages_in
from tests.federation.real.faults import fault, rounds_of_a_site, seconds_of
from tests.federation.real.local import final, outcomes, simulated, without

CURIOUS = Path(__file__).with_name("curious_coordinator.py")
QUADRATIC = ["--problem", "nested_quadratic", "--local-steps", 5, "--outer-batch", 2, "--algorithm", "FCSG-M"]
SECURE = [*QUADRATIC, "--sites", 3, "--secure-aggregation", "true"]
METHOD = "FCSG-M"
ITS_ROUND = rounds_of_a_site(1)
SHAPES = "its masked update has other parts than requested"
PRECISION = 1e-11
"""Of a run: a mean over three sites in the default range is off by at most 2.3e-13."""


def assert_as_precise_as_stated(found, expected):
    for a, b in zip(leaves(found.shared), leaves(expected.shared), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=PRECISION)


@pytest.mark.federation
def test_sites_drop_out_after_masking_or_send_garbage_and_are_named_and_the_sum_is_that_of_the_rest(
    record_property, start
):
    local = start(*SECURE, "--rounds", 4, up=False)
    local.misbehave("0", (2, "secure_update shape"))
    local.misbehave("1", (1, "secure_confirm raise"), (3, "secure_update random"))
    local.misbehave("2", (0, "secure_update die"))
    local.up()
    folder = local.run()
    log = (folder.path / "log.txt").read_text()
    assert outcomes(folder, 1) == {"0": "answered", "1": "answered", "2": "its app's process died"}
    assert "site 1 is in the sum, but does not help to reveal it: it raised RuntimeError" in log
    assert outcomes(folder, 2) == dict.fromkeys("012", "answered")
    assert outcomes(folder, 3) == {"0": SHAPES, "1": "answered", "2": "answered"}
    assert "repeating round 4: the sum of x is outside what updates within the ranges can give" in log
    assert outcomes(folder, 4) == dict.fromkeys("012", "answered")
    assert_as_precise_as_stated(final(folder, METHOD), without(folder, METHOD, {(2, 0), (0, 2)}))
    rest, died = "left out and named; the sum is that of the others", seconds_of(folder, 1)
    record_property(*fault("secure sum: a site's process dies before its masked update arrives", rest, ITS_ROUND, died))
    recovered = "it is in the sum; the others revealed the shares that undo its mask"
    record_property(*fault("secure sum: a site drops out after masking", recovered, seconds=seconds_of(folder, 2)))
    record_property(*fault("secure sum: a site sends other shapes", rest, ITS_ROUND, seconds_of(folder, 3)))
    repeated = "the sum was out of range and not used; the round was repeated"
    garbage = "secure sum: a site sends random numbers"
    record_property(*fault(garbage, repeated, "the round, which was repeated", seconds_of(folder, 4)))


@pytest.mark.federation
def test_a_curious_coordinator_gets_refusals_and_the_sum(record_property, start):
    local = start(*SECURE, "--rounds", 2, up=False)
    shutil.copy(CURIOUS, local.deployment.app / "federated" / "server_app.py")
    local.up()
    folder = local.run()
    assert_as_precise_as_stated(final(folder, METHOD), simulated(folder, METHOD))
    told, logs = (folder.path / "log.txt").read_text(), local.deployment.processes.folder
    assert "has answered twice" not in told
    assert "round 1: site 0 is left out: refused by policy" in told
    for site in ("0", "1"):
        why = "refused by policy: a sum over 1 sites was asked for, fewer than the threshold of 2"
        assert why in (logs / f"site-{site}.log").read_text()
    for site in ("0", "1", "2"):
        assert "a message that was answered before, or out of order" in (logs / f"site-{site}.log").read_text()
        place = local.deployment.site_folder(site)
        sent = messages_in(place)
        assert faults(place) == []
        assert {message["kind"] for message in sent} <= {
            *("describe", "secure_keys", "secure_shares", "secure_update", "secure_confirm", "secure_reveal")
        }
        twice = [message for message in sent if message.get("refused") and message["kind"] == "secure_update"]
        assert len(twice) == 1
        assert "updates" not in twice[0]
    refused = "the site refused, left the round and recorded it; the round was repeated honestly"
    subset = "secure sum: the coordinator asks for a sum over one site"
    record_property(*fault(subset, refused, "the round, which was repeated", seconds_of(folder, 1)))
    twice = "refused by every site and recorded; nothing was sent a second time"
    record_property(*fault("secure sum: the coordinator sends messages a second time", twice))
