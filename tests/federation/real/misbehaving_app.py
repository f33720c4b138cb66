"""A site's part as it should not be: it does what misbehave.json in the site's folder says, once each."""

import json
import os
import re
import signal
import time
from functools import wraps
from pathlib import Path

import torch

from fedcso.core.tree import map_leaves
from fedcso.federation import client


def misbehaving(honest):
    """An answer that is not honest when a deed is due; deeds are for `train` unless they begin with another name."""

    @wraps(honest)
    def answer(order, tree, site, app):
        path = site.folder / "misbehave.json"
        deeds = json.loads(path.read_text()) if path.is_file() else []
        due = [deed for deed in deeds if deed[0] == order.round and _of(deed[1])[0] == honest.__name__]
        if not due:
            return honest(order, tree, site, app)
        path.write_text(json.dumps([deed for deed in deeds if deed != due[0]]))
        return DEEDS[_of(due[0][1])[1]](honest, order, tree, site, app)

    return answer


def _of(deed):
    """To which message a deed is the answer, and what it is."""
    kind, _, what = deed.rpartition(" ")
    return kind or "train", what


def spoilt(how):
    def spoil(honest, *arguments):
        words, sent = honest(*arguments)
        return words, map_leaves(how, sent)

    return spoil


def raises(*arguments):
    raise RuntimeError("patient 17 is called Smith")


def dies(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)


def sleeps(*arguments):
    time.sleep(600)


def is_slow(honest, *arguments):
    time.sleep(20)
    return honest(*arguments)


def holds(honest, order, tree, site, app):
    """Answers when the test lets it go."""
    go = site.folder / "go"
    while not go.exists():
        time.sleep(0.1)
    go.unlink()
    return honest(order, tree, site, app)


def expires(honest, order, tree, site, app):
    """The last answer before the site's policy ends."""
    path = site.folder / "site.toml"
    path.write_text(re.sub("(?m)^expires = .*", "expires = 2020-01-31", path.read_text()))
    return honest(order, tree, site, app)


DEEDS = {
    "expire": expires,
    "hold": holds,
    "raise": raises,
    "die": dies,
    "sleep": sleeps,
    "slow": is_slow,
    "nan": spoilt(lambda leaf: leaf * torch.nan),
    "shape": spoilt(lambda leaf: torch.stack([leaf, leaf])),
    "huge": spoilt(lambda leaf: leaf + 1e12),
    "random": spoilt(lambda leaf: torch.randint(-(2**62), 2**62, leaf.shape)),
}

client.train = misbehaving(client.train)
client.SECURE = [misbehaving(answer) for answer in client.SECURE]
app = client.client_app(Path(__file__).parent)
