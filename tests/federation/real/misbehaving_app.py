"""A site's part as it should not be: it does what misbehave.json in the site's folder says, once each."""

import json
import os
import re
import signal
import time
from pathlib import Path

import torch

from fedcso.core.tree import map_leaves
from fedcso.federation import client

honest = client.train


def train(order, tree, site, app):
    path = site.folder / "misbehave.json"
    deeds = json.loads(path.read_text()) if path.is_file() else []
    due = [deed for round, deed in deeds if round == order.round]
    if not due:
        return honest(order, tree, site, app)
    path.write_text(json.dumps([pair for pair in deeds if pair[0] != order.round]))
    return DEEDS[due[0]](order, tree, site, app)


def spoilt(how):
    def spoil(*arguments):
        words, sent = honest(*arguments)
        return words, map_leaves(how, sent)

    return spoil


def raises(order, tree, site, app):
    raise RuntimeError("patient 17 is called Smith")


def dies(order, tree, site, app):
    os.kill(os.getpid(), signal.SIGKILL)


def sleeps(*arguments):
    time.sleep(600)


def is_slow(*arguments):
    time.sleep(20)
    return honest(*arguments)


def expires(order, tree, site, app):
    """The last answer before the site's policy ends."""
    path = site.folder / "site.toml"
    path.write_text(re.sub("(?m)^expires = .*", "expires = 2020-01-31", path.read_text()))
    return honest(order, tree, site, app)


DEEDS = {
    "expire": expires,
    "raise": raises,
    "die": dies,
    "sleep": sleeps,
    "slow": is_slow,
    "nan": spoilt(lambda leaf: leaf * torch.nan),
    "shape": spoilt(lambda leaf: torch.cat([leaf, leaf])),
    "huge": spoilt(lambda leaf: leaf + 1e12),
}

client.train = train
app = client.client_app(Path(__file__).parent)
