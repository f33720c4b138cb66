"""A thousand hostile answers and files; `python -m tests.hostile --number 10000` tries more, with any seed."""

import json
from contextlib import nullcontext

import pytest
import torch

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from fedcso.federation import client
from fedcso.federation.request import Order
from fedcso.federation.sovereignty.audit import faults, messages_in
from fedcso.federation.wire import LONGEST_WORDS, in_a_line, pack, unpack
from tests.federation.in_process import allow
from tests.hostile import inputs
from tests.hostile.answers import Hostile
from tests.hostile.coordinator import CONFIG, MEGABYTES, SECONDS, attack


def test_the_coordinator_goes_on_with_the_other_sites(tmp_path):
    longest, grown = attack(seed=1, number=500, folder=tmp_path)
    assert longest < SECONDS
    assert grown < MEGABYTES


def test_hostile_files_are_refused_in_words_or_used(tmp_path):
    found, grown, harm = inputs.attack(seed=1, number=500, folder=tmp_path)
    assert harm == []
    assert sum(one.number for one in found.values()) == 500
    assert all(0 < one.refused < one.number for one in found.values()), found  # each kind holds good and bad ones
    assert max(one.longest for one in found.values()) < inputs.SECONDS
    assert grown < inputs.MEGABYTES


@pytest.mark.parametrize("said", [None, 3, ["a"], "a" * 10**6, "a\n b\r\0\x1b[31m", ""])
def test_a_sites_words_are_one_short_line(said):
    shown = in_a_line(said)
    assert len(shown) <= LONGEST_WORDS
    assert shown.isprintable()


def test_a_site_refuses_hostile_messages_and_records_that_it_did(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "_at_most", lambda seconds: nullcontext())  # it would end this process
    allow(tmp_path, CONFIG)
    order = Order(CONFIG, ["0", "1", "2"], run="run", algorithm="FCSG-M", client=1, round=0)
    honest = [pack(order.words(), {"shared": {"x": torch.zeros(3, dtype=torch.float64)}, "x": torch.zeros(3)})]
    kinds = [client.describe, client.train, client.evaluate, client.count]
    for number in range(200):
        content = Hostile(3, number, honest).content()
        words, _ = unpack(client.respond(kinds[number % 4], content, {"site": "1", "folder": str(tmp_path)}, tmp_path))
        assert len(json.dumps(words)) < 1000
        assert "refused" in words or words["site"] == "1"
    assert len(messages_in(tmp_path)) == 200
    assert faults(tmp_path) == []
    assert {path.name for path in tmp_path.iterdir()} <= {"site.toml", "sent.jsonl", "sent.head", ".sent.lock", "local"}
