"""The protocol without messages: masks cancel, dropouts are recovered, and what was tampered with is noticed."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcso.core.tree import without
from fedcso.federation.secure import party
from fedcso.federation.secure.identity import Identity
from fedcso.federation.secure.masks import mask, pair_mask
from fedcso.federation.secure.recovery import Ledger, Unrecoverable, unmask
from fedcso.federation.secure.terms import Terms
from fedcso.federation.sovereignty.policy import Refused
from fedcso.federation.wire import Unreadable

NAMES = ["berlin", "oslo", "rome", "wien"]
KEYS = {name: ec.generate_private_key(ec.SECP384R1()) for name in NAMES}
PEERS = {name: key.public_key() for name, key in KEYS.items()}
IDENTITIES = {name: Identity(name, KEYS[name], PEERS) for name in NAMES}


def terms_for(sites, threshold, session="one", **changes):
    asked = Terms(session, "run", 0, list(sites), [1.0] * len(sites), threshold, "10", {"x": "digest"}, "settings")
    return replace(asked, **changes)


@dataclass
class Circle:
    """Sites in one process, with the coordinator's ledger, up to the masked updates."""

    sites: list
    threshold: int
    session: str = "one"
    length: int = 5
    states: dict = field(default_factory=dict)
    masked: dict = field(default_factory=dict)

    def __post_init__(self):
        self.ledger = Ledger(terms_for(self.sites, self.threshold, self.session))
        rng = np.random.default_rng(len(self.session))
        self.updates = {site: rng.integers(0, 2**64, self.length, np.uint64) for site in self.sites}

    def until_keys(self):
        for site in self.sites:
            self.states[site], said = party.begin(self.ledger.terms, IDENTITIES[site])
            self.ledger.add_keys(site, said)
        return self

    def until_shares(self):
        self.until_keys()
        for site in self.sites:
            self.states[site], said = party.share(self.states[site], IDENTITIES[site], self.ledger.keys)
            self.ledger.add_shares(site, said)
        return self

    def until_masked(self):
        self.until_shares()
        for site in self.sites:
            self.states[site] = party.receive(self.states[site], self.ledger.boxes_for(site))
            self.masked[site] = party.masked(self.states[site], self.updates[site])
        return self

    def confirmed(self, survivors):
        """The states and signatures of the survivors once they have confirmed the list."""
        self.ledger.survivors = sorted(survivors)
        answers = {site: party.confirm(self.states[site], IDENTITIES[site], sorted(survivors)) for site in survivors}
        return {site: answer[0] for site, answer in answers.items()}, {
            site: answer[1]["signature"] for site, answer in answers.items()
        }

    def revealed(self, survivors, by):
        states, signatures = self.confirmed(survivors)
        shares = {site: party.reveal(states[site], IDENTITIES[site], signatures) for site in by}
        return {site: self.ledger.check_revealed(site, said) for site, said in shares.items()}

    def summed(self, survivors, by=None):
        """What the coordinator computes for these survivors, with the help of some of them."""
        total = sum(self.masked[site] for site in survivors)
        return unmask(self.ledger, total, self.revealed(survivors, by or survivors))

    def expected(self, survivors):
        return sum(self.updates[site] for site in survivors)


@pytest.fixture(scope="module")
def four():
    return Circle(NAMES, 3).until_masked()


@given(st.binary(min_size=32, max_size=32), st.integers(0, 50))
def test_the_masks_of_two_sites_cancel_and_depend_on_every_bit_of_the_key(key, length):
    assert not (pair_mask(key, length, first=True) + pair_mask(key, length, first=False)).any()
    other = bytes([key[0] ^ 1]) + key[1:31] + bytes([key[31] ^ 1])  # the same folded to 32 bits
    assert length == 0 or (mask(key, length) != mask(other, length)).any()


@given(survivors=st.sets(st.sampled_from(NAMES), min_size=3), data=st.data())
@settings(max_examples=12, deadline=None)
def test_the_sum_is_recovered_for_every_set_of_survivors_and_of_helpers(four, survivors, data):
    by = data.draw(st.sets(st.sampled_from(sorted(survivors)), min_size=3))
    assert np.array_equal(four.summed(survivors, by), four.expected(survivors))


def test_the_sum_over_three_sites_is_recovered_by_any_two():
    circle = Circle(NAMES[:3], 2).until_masked()
    for number in (2, 3):
        for survivors in combinations(circle.sites, number):
            for by in combinations(survivors, 2):
                assert np.array_equal(circle.summed(survivors, by), circle.expected(survivors))


def test_a_masked_update_says_nothing_without_its_secrets(four):
    """Not even with all pairwise masks or with its seed: both secrets are needed, and a site reveals one."""
    site = four.states["oslo"]
    without_seed = four.masked["oslo"] - mask(bytes.fromhex(site.seed), four.length)
    assert not np.array_equal(without_seed, four.updates["oslo"])
    assert not np.array_equal(four.masked["oslo"], four.updates["oslo"])
    for survivors in (NAMES, NAMES[:3]):
        for site, shares in four.revealed(survivors, survivors).items():
            for other, share in shares.items():
                seed, pair = four.ledger.dealt[other]["commitments"][site]
                assert party.commit(share) == (seed if other in survivors else pair)


def test_a_site_that_accepts_others_than_most_do_is_left_out_and_so_is_one_that_they_do_not_accept():
    circle = Circle(NAMES, 3).until_keys()
    forged = Identity("wien", ec.generate_private_key(ec.SECP384R1()), PEERS)
    circle.states["wien"], keys = party.begin(circle.ledger.terms, forged)
    circle.ledger.add_keys("wien", keys)
    for site in circle.sites:
        identity = forged if site == "wien" else IDENTITIES[site]
        known = replace(identity, peers=PEERS | {"wien": forged.key.public_key()}) if site == "wien" else identity
        circle.states[site], said = party.share(circle.states[site], known, circle.ledger.keys)
        circle.ledger.add_shares(site, said)
    assert circle.ledger.settle() == {"wien": "other sites do not accept its signature"}
    assert list(circle.ledger.dealt) == ["berlin", "oslo", "rome"]


def test_too_few_shares_recover_nothing(four):
    revealed = four.revealed(NAMES, NAMES[:2])
    with pytest.raises(Unrecoverable, match="2 sites revealed shares, and 3 are needed"):
        unmask(four.ledger, sum(four.masked.values()), revealed)


@pytest.mark.parametrize("survivors", [["oslo"], ["oslo", "rome"], [], [*NAMES, "bonn"], ["oslo"] * 3, "oslo", None])
def test_a_site_does_not_confirm_a_sum_over_too_few_or_unknown_sites(four, survivors):
    with pytest.raises(Refused):
        party.confirm(four.states["oslo"], IDENTITIES["oslo"], survivors)


def test_a_site_does_not_confirm_a_sum_without_itself(four):
    with pytest.raises(Refused, match="without this site"):
        party.confirm(four.states["oslo"], IDENTITIES["oslo"], [name for name in NAMES if name != "oslo"])


def test_a_coordinator_that_tells_sites_different_lists_gets_no_shares(four):
    """It would need both secrets of wien: the seed from those who think that it is there, the key from the others."""
    states, signatures = four.confirmed(NAMES)
    _, others = four.confirmed(NAMES[:3])
    with pytest.raises(Refused, match="site berlin has not signed what this site was told"):
        party.reveal(states["oslo"], IDENTITIES["oslo"], others)
    with pytest.raises(Refused, match="fewer than the threshold of 3"):
        party.reveal(states["oslo"], IDENTITIES["oslo"], {"oslo": signatures["oslo"], "rome": signatures["rome"]})
    forged = {"rome": signatures["oslo"]}
    assert party.reveal(states["oslo"], IDENTITIES["oslo"], signatures | forged)  # three of four have signed
    with pytest.raises(Refused, match="site rome has not signed"):
        party.reveal(states["oslo"], IDENTITIES["oslo"], without(signatures, "wien") | forged)


@pytest.mark.parametrize(
    ("sites", "threshold", "why"),
    [
        (NAMES[1:], 2, "this site does not take part"),
        (NAMES, 2, "more than half of the sites"),
        (NAMES[:1], 1, "at least 2"),
        (NAMES[:1], 2, "more than half of the sites"),
    ],
)
def test_unsafe_terms_are_refused(sites, threshold, why):
    with pytest.raises(Refused, match=why):
        party.begin(terms_for(sites, threshold), IDENTITIES["berlin"])


@pytest.mark.parametrize(
    "changes",
    [
        {"session": "two"},
        {"round": 1},
        {"run": "other"},
        {"weights": [1.0, 1.0, 1e-9]},
        {"ranges": "1e9"},
        {"parts": {"x": "another model"}},
        {"settings": "learning_rate = 0"},
        {"sites": ["berlin", "rome", "oslo"]},
    ],
)
def test_keys_that_were_signed_for_other_terms_are_refused(changes, caplog):
    """Of another round, or because the coordinator tells sites different things."""
    circle = Circle(NAMES[:3], 2).until_keys()
    _, other = party.begin(replace(circle.ledger.terms, **changes), IDENTITIES["rome"])
    circle.ledger.add_keys("rome", other)
    state, said = party.share(circle.states["oslo"], IDENTITIES["oslo"], circle.ledger.keys)
    assert list(state.keys) == list(said["commitments"]) == ["berlin", "oslo"]
    assert "a sum goes on without site rome: site rome has not signed what this site was told" in caplog.text
    with pytest.raises(Refused, match="a sum over 1 sites was asked for"):
        party.share(circle.states["oslo"], IDENTITIES["oslo"], without(circle.ledger.keys, "berlin"))


def test_keys_of_the_coordinator_itself_are_not_taken_for_those_of_a_site():
    circle = Circle(NAMES[:3], 2).until_keys()
    forged = Identity("rome", ec.generate_private_key(ec.SECP384R1()), PEERS)
    circle.ledger.add_keys("rome", party.begin(circle.ledger.terms, forged)[1])
    assert "rome" not in party.share(circle.states["oslo"], IDENTITIES["oslo"], circle.ledger.keys)[1]["boxes"]


def test_keys_of_another_session_of_this_site_are_refused():
    circle = Circle(NAMES[:3], 2).until_keys()
    later = party.begin(circle.ledger.terms, IDENTITIES["oslo"])[0]
    with pytest.raises(Refused, match="a message of another round or session"):
        party.share(later, IDENTITIES["oslo"], circle.ledger.keys)


def test_keys_of_too_few_sites_are_refused():
    circle = Circle(NAMES[:3], 2).until_keys()
    only = {"oslo": circle.ledger.keys["oslo"]}
    with pytest.raises(Refused, match="a sum over 1 sites was asked for, fewer than the threshold of 2"):
        party.share(circle.states["oslo"], IDENTITIES["oslo"], only)


@given(place=st.integers(0, 10**6), flip=st.integers(1, 255))
@settings(max_examples=20, deadline=None)
def test_changed_boxes_and_commitments_are_noticed_and_the_sum_goes_on_without_the_dealer(four, place, flip):
    boxes = four.ledger.boxes_for("oslo")
    changed = bytearray(urlsafe_b64decode(bytes.fromhex(boxes["rome"]["box"])))
    changed[place % len(changed)] ^= flip
    token = urlsafe_b64encode(changed)
    fresh = replace(four.states["oslo"], shares={})
    for change in ({"box": token.hex()}, {"commitments": boxes["wien"]["commitments"]}, {"box": 3}):
        state = party.receive(fresh, boxes | {"rome": boxes["rome"] | change})
        assert sorted(state.shares) == ["berlin", "oslo", "wien"]
    with pytest.raises(Refused, match="a sum over 2 sites was asked for, fewer than the threshold of 3"):
        party.receive(fresh, {"rome": boxes["rome"] | {"box": token.hex()}, "wien": boxes["wien"]})


def test_boxes_of_another_round_are_refused(caplog):
    """The same keys, but shares that were sealed for other terms."""
    circle = Circle(NAMES[:3], 2).until_shares()
    later = terms_for(NAMES[:3], 2, session="two")
    state = replace(circle.states["oslo"], terms=later.words())
    with pytest.raises(Refused, match="a sum over 1 sites"):
        party.receive(state, circle.ledger.boxes_for("oslo"))
    assert "without site rome: its shares are not those that it has committed to" in caplog.text


@given(place=st.integers(0, 10**6), flip=st.integers(1, 255), about=st.sampled_from(NAMES))
@settings(max_examples=20, deadline=None)
def test_a_changed_share_is_noticed_and_the_site_that_revealed_it_is_named(four, place, flip, about):
    states, signatures = four.confirmed(NAMES[:3])
    shares = party.reveal(states["oslo"], IDENTITIES["oslo"], signatures)
    changed = bytearray.fromhex(shares[about])
    changed[place % len(changed)] ^= flip
    with pytest.raises(Unreadable, match=f"its share of a secret of site {about} is not the one"):
        four.ledger.check_revealed("oslo", shares | {about: changed.hex()})


@pytest.mark.parametrize("said", [None, [], "oslo", {}, {"oslo": 3}, dict.fromkeys(NAMES, "zz")])
def test_other_answers_are_no_shares(four, said):
    four.ledger.survivors = list(NAMES)
    with pytest.raises(Unreadable):
        four.ledger.check_revealed("oslo", said)


@pytest.mark.parametrize("survivors", [["berlin", "oslo", "rome"], ["berlin", "oslo"]])
def test_a_site_that_deals_shares_of_another_secret_is_named_and_nothing_is_used(survivors, monkeypatch):
    circle, secrets_of = Circle(NAMES[:3], 2), party._secrets
    lies = {"rome": (b"a" * 32, b"b" * 48)}
    monkeypatch.setattr(party, "_secrets", lambda state: lies.get(state.site) or secrets_of(state))
    circle.until_masked()
    with pytest.raises(Unrecoverable, match="the shares that site rome dealt do not give the secret"):
        circle.summed(survivors)
