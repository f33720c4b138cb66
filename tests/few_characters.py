"""A few small characters in place of the embedded ones, and options of few-shot learning for them."""

import pytest
import torch

from fedcso import datasets
from fedcso.datasets import Characters

DRAWINGS = 8
OPTIONS = {
    "clients": 2,
    "ways": 3,
    "queries": 3,
    "filters": 4,
    "test_tasks": 3,
    "validation_tasks": 2,
    "client_tasks": 2,
}
"""Options of `maml` and `pretraining`."""
ON_THE_COMMAND_LINE = [
    *(word for name, value in OPTIONS.items() for word in (f"--{name}", str(value))),
    *("--rounds", "2", "--local_steps", "1", "--evaluate_every", "2", "--seeds", "1"),
]


def few_characters(classes: tuple[int, int, int] = (8, 4, 5)) -> Characters:
    """Return drawings of random patterns, each with some pixels flipped."""
    rng = torch.Generator().manual_seed(0)

    def drawings(number: int) -> torch.Tensor:
        patterns = torch.rand(number, 1, 7, 7, generator=rng) > 0.5
        large = patterns.repeat_interleave(4, 2).repeat_interleave(4, 3)
        wrong = torch.rand(number, DRAWINGS, 28, 28, generator=rng) > 0.9
        return ((large ^ wrong) * 255).to(torch.uint8)

    return Characters(*map(drawings, classes))


def instead_of_glyphs(monkeypatch: pytest.MonkeyPatch) -> Characters:
    """Replace the embedded characters by these few."""
    few = few_characters()
    monkeypatch.setitem(datasets.CHARACTERS, "glyphs", lambda: few)
    return few
