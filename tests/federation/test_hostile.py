"""A thousand hostile answers; `python -m tests.federation.hostile --number 10000` tries more, with any seed."""

import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from fedcso.federation.wire import LONGEST_WORDS, in_a_line
from tests.federation.hostile import MEGABYTES, SECONDS, attack


def test_the_coordinator_goes_on_with_the_other_sites(tmp_path):
    longest, grown = attack(seed=1, number=1000, folder=tmp_path)
    assert longest < SECONDS
    assert grown < MEGABYTES


@pytest.mark.parametrize("said", [None, 3, ["a"], "a" * 10**6, "a\n b\r\0\x1b[31m", ""])
def test_a_sites_words_are_one_short_line(said):
    shown = in_a_line(said)
    assert len(shown) <= LONGEST_WORDS
    assert shown.isprintable()
