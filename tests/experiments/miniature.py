"""Experiments with few of everything."""

from dataclasses import replace
from typing import Any

import pytest

from fedcso.experiments import EXPERIMENTS


def shrink(patch: pytest.MonkeyPatch, name: str, **changes: Any) -> None:
    """Replace some of an experiment's settings."""
    experiment = EXPERIMENTS[name]
    smaller = replace(experiment, settings=lambda quick: replace(experiment.settings(quick), **changes))
    patch.setitem(EXPERIMENTS, name, smaller)
