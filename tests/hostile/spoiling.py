"""Spoil values and files: what is the same for all hostile inputs."""

import math

EXTREME = [0, -1, 1, 2**31, 2**63 - 1, -(2**63), 10**30, 10**400, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf]
TEXTS = [
    "",
    "0",
    "-1",
    "nan",
    "inf",
    "1e400",
    "1e-400",
    "a,b",
    "../../x",
    "{}",
    "[",
    "é" * 50,
    "\x01\x1b[31m",
    "a" * 10_000,
]


def spoil_bytes(rng, good):
    """A good file with pieces cut out, overwritten, doubled or put in; cut off; or never a file of this kind."""
    for _ in range(rng.randint(1, 3)):
        good = rng.choice(WAYS)(rng, good, *sorted(rng.randint(0, len(good)) for _ in range(2)))
    return good


def _piece(rng):
    return rng.randbytes(rng.choice([0, 1, 8, 40]))


WAYS = [
    lambda rng, good, start, stop: good[:start] + good[stop:],
    lambda rng, good, start, stop: good[:start] + _piece(rng) + good[stop:],
    lambda rng, good, start, stop: good[:start] + _piece(rng) + good[start:],
    lambda rng, good, start, stop: good[:stop] + good[start:],
    lambda rng, good, start, stop: good[:start],
    lambda rng, good, start, stop: rng.randbytes(rng.choice([0, 1, 10, 1000])),
    lambda rng, good, start, stop: good * 3,
    lambda rng, good, start, stop: (
        good[:start] + bytes(byte ^ 1 for byte in good[start : start + 1]) + good[start + 1 :]
    ),
]
"""How a file is spoilt, given two places in it."""


def any_value(rng, depth=0):
    """A value of any kind: extreme numbers, texts, and lists and mappings of them."""
    kind = rng.choice(["number", "number", "small", "text", "none", "bool"] + ["list", "dict"] * (depth < 3))
    if kind == "list":
        return [any_value(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    if kind == "dict":
        return {rng.choice(TEXTS): any_value(rng, depth + 1) for _ in range(rng.randint(0, 3))}
    simple = {"number": rng.choice(EXTREME), "small": rng.choice([-3, 2, 3, 0.5, 1e-9]), "text": rng.choice(TEXTS)}
    return (simple | {"none": None, "bool": rng.random() < 0.5})[kind]


def nested(rng):
    """Brackets nested as deep as parsers allow, and deeper."""
    depth = rng.choice([50, 900, 5000, 50_000])
    opened, closed = rng.choice([("[", "]"), ("{a: ", "}"), ("- ", "")])
    return opened * depth + "1" + closed * depth
