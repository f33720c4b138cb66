"""Inner samples with a chosen share of positives, weighted so that their mean is that of another share.

Of m samples the fraction π_b is positive. With the weights

    w⁺ = π / π_b,      w⁻ = (1 − π) / (1 − π_b)

a weighted mean over them has the expectation of a plain mean over samples of which the fraction π is positive: the
client's own share, or that of the examples which the model will meet. Where π is small, a plain sample has few
positives or none, and what is estimated from them has a relative variance of order 1/(πm); with π_b = ½ it is of order
1/m. But the negatives that give way make the rest noisier: for gradients of AUPRC a share of a few times π is best, and
half of the samples is too much (tests/problems/test_strata.py measures both).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from fedcso.core.errors import InvalidValue, is_number, require
from fedcso.datasets.examples import Examples


class Weighted(NamedTuple):
    """Examples with weights, in place of `Examples`."""

    inputs: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor


@dataclass(frozen=True)
class Strata:
    """How many of the inner samples are positive, and for which share of positives they stand."""

    positives: float | None = None
    """π_b, the share of positives among the samples; by default they are drawn from all examples."""
    prevalence: float | None = None
    """π, the share of positives for which the mean is estimated; by default the client's own."""

    def __post_init__(self) -> None:
        for name, value in (("inner_positives", self.positives), ("prevalence", self.prevalence)):
            if value is not None:
                require(name, value, lambda share: is_number(share) and 0 < share < 1, "a number between 0 and 1")

    @property
    def plain(self) -> bool:
        """True if samples are drawn from all examples and not weighted."""
        return self.positives is None and self.prevalence is None

    def draw(self, data: Examples, rng: torch.Generator, lead: tuple[int, ...], m: int) -> Weighted:
        """Draw m examples with replacement for each index of the leading axes, in random order."""
        own = float(data.labels.double().mean())
        if self.positives is None:
            chosen, share = torch.randint(len(data.labels), (*lead, m), generator=rng), own
        else:
            chosen, share = self._draw_both_kinds(data.labels, rng, lead, m)
        aim = own if self.prevalence is None else self.prevalence
        labels = data.labels[chosen]
        by_label = torch.tensor([(1 - aim) / (1 - share), aim / share], dtype=torch.float64)
        return Weighted(data.inputs[chosen], labels, by_label[labels])

    def _draw_both_kinds(
        self, labels: torch.Tensor, rng: torch.Generator, lead: tuple[int, ...], m: int
    ) -> tuple[torch.Tensor, float]:
        """Return indices of examples, and the share of positives among them; each kind has at least one."""
        if m < 2:
            raise InvalidValue("inner_batch", m, "at least 2 with inner_positives: a positive and a negative example")
        assert self.positives is not None
        count = min(max(round(self.positives * m), 1), m - 1)
        parts = []
        for label, number in ((1, count), (0, m - count)):
            kind = (labels == label).nonzero().squeeze(1)
            parts.append(kind[torch.randint(len(kind), (*lead, number), generator=rng)])
        # In random order, because estimators that split the samples need parts that are alike.
        order = torch.rand((*lead, m), generator=rng).argsort(-1)
        return torch.cat(parts, -1).gather(-1, order), count / m
