"""Experiments with few of everything."""

import sys
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from torch import nn

from fedcso.experiments import EXPERIMENTS
from fedcso.problems import MAML, PROBLEMS
from tests.few_characters import OPTIONS, instead_of_glyphs

NETWORK = (sys.modules[MAML.__module__], "Conv4")
"""Where the network of few-shot problems is made."""


def shrink(patch: pytest.MonkeyPatch, name: str, **changes: Any) -> None:
    """Replace some of an experiment's settings."""
    experiment = EXPERIMENTS[name]
    smaller = replace(experiment, settings=lambda quick: replace(experiment.settings(quick), **changes))
    patch.setitem(EXPERIMENTS, name, smaller)


def shrink_few_shot(patch: pytest.MonkeyPatch) -> None:
    """Replace the problem `maml` by one with few characters and a network of one layer."""
    instead_of_glyphs(patch)
    patch.setattr(*NETWORK, lambda ways, *_: nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, ways)))
    some = {name: OPTIONS[name] for name in ("ways", "queries", "validation_tasks")}
    patch.setitem(PROBLEMS, "maml", partial(PROBLEMS["maml"], **some))
