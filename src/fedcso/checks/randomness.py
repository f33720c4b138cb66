"""Random numbers come from the given generator alone: nothing else is used, and nothing else changes."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from fedcso.checks.finding import Finding
from fedcso.checks.specimen import INNER, OUTER, STEPS, Specimen
from fedcso.core.streams import START, stream
from fedcso.core.task import fingerprint

GLOBAL: dict[str, tuple[Callable[[], Any], Callable[[int], Any]]] = {
    "torch's global generator": (torch.get_rng_state, torch.manual_seed),
    "numpy's global generator": (np.random.get_state, np.random.seed),
    "Python's module random": (random.getstate, random.seed),
}
"""How to read the state of each global generator, and how to seed it."""

ADVICE = {
    "torch's global generator": "pass generator=rng to torch's functions",
    "numpy's global generator": "make one of rng: np.random.default_rng(torch.randint(2**31, (), "
    "generator=rng).item())",
    "Python's module random": "draw with torch instead, and pass generator=rng",
}


@contextmanager
def untouched() -> Iterator[None]:
    """Put the global generators back to where they were."""
    state, numbers, python = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(state)
        np.random.set_state(numbers)
        random.setstate(python)


def find_other_sources(function: str, call: Callable[[], Any], draws: bool = True) -> Iterator[Finding]:
    """Check one function; `draws` says whether it may draw random numbers at all, from a generator that it is given."""
    results = []
    with untouched():
        for seed in (1, 2):
            for _, set_seed in GLOBAL.values():
                set_seed(seed)
            before = {name: fingerprint(read()) for name, (read, _) in GLOBAL.items()}
            results.append(fingerprint(call()))
            used = [name for name, (read, _) in GLOBAL.items() if fingerprint(read()) != before[name]]
    for name in used:
        remedy = ADVICE[name] if draws else "draw in sample_inner, from its rng, and make the numbers part of eta"
        yield Finding(f"{function} draws from {name}, so that engines and resumed runs differ: {remedy}")
    if not used and results[0] != results[1]:
        remedy = "draw from rng alone" if draws else "what it returns may depend on its arguments alone"
        yield Finding(f"{function} returns something else when it is called again with the same arguments: {remedy}")


def find_in_draws(specimen: Specimen) -> Iterator[Finding]:
    """Check the three functions that draw."""
    problem, data, shape = specimen.problem, specimen.data, (STEPS, OUTER)
    xi = problem.sample_outer(data, stream(0, 0, 0), shape)
    yield from find_other_sources("init", lambda: problem.init(stream(0, START, 0)))
    yield from find_other_sources("sample_outer", lambda: problem.sample_outer(data, stream(0, 0, 0), shape))
    yield from find_other_sources("sample_inner", lambda: problem.sample_inner(data, stream(0, 0, 1), xi, INNER))


def find_in_values(specimen: Specimen) -> Iterator[Finding]:
    """Check the functions that evaluate."""
    problem, x, (xi, eta) = specimen.problem, specimen.x, specimen.batch
    y = problem.inner(x, xi, eta)
    yield from find_other_sources("inner", lambda: problem.inner(x, xi, eta), draws=False)
    yield from find_other_sources("outer", lambda: problem.outer(y, xi), draws=False)
