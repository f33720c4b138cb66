"""Successive halving on validation data: many settings for few steps, the best of them for more.

    first    all objectives × networks × learning rates                                   1 seed    T/4 steps
    second   the best third, with learning rates ½, 1 and 2 times the best one,
             without and with weight decay                                                2 seeds   T/2 steps
    last     the best two, with learning rates ½ and 1 times the best one                 3 seeds   T steps

(Large networks have fewer learning rates and one seed: `fedcso.fitting.budget`.)
The better kind of ordinary federated learning is always among those that go on, for comparison. A setting is worth the
validation value of its chosen iterates (`fedcso.engines.choice`), mean over seeds. Within a rung all settings have the
same number of steps and see the same number of examples. Settings of the second and last rung compete in the end,
because more steps are not always better: small data are overfitted.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from fedcso.engines.choice import deciding_metric
from fedcso.fitting.budget import Budget
from fedcso.fitting.objectives import OBJECTIVES, ORDINARY
from fedcso.fitting.train import Group, Trainer, Tried, whole_rounds


class Rung(NamedTuple):
    """A stage of the search."""

    number: int
    name: str
    share: float
    """Of the T steps."""


FIRST, SECOND, LAST = Rung(0, "first", 1 / 4), Rung(1, "second", 1 / 2), Rung(2, "last", 1.0)


@dataclass
class Search:
    """A search over all objectives and some networks."""

    trainer: Trainer
    nets: Sequence[str]
    budget: Budget
    seed: int
    """The first seed of runs."""
    say: Callable[[str], None]
    """Shows a line on what leads."""
    tried: dict[str, list[Tried]] = field(default_factory=dict)
    """All settings, by rung."""
    skipped: int = 0
    """The number of groups that were not tried because time had run out."""

    def find(self) -> list[Tried]:
        """Run all rungs; return the best setting of each group that came far enough, best first."""
        everything = [Group(key, net) for key in OBJECTIVES for net in self.nets]
        leading = _best_by_group(self._rung(FIRST, dict.fromkeys(everything, self.budget.rates)))
        third = _with_ordinary(leading[: max(2, math.ceil(len(leading) / 3))], leading)
        decayed = [(replace(one.group, weight_decay=decay), one.rate) for one in third for decay in self.budget.decays]
        second = self._rung(SECOND, {group: self._around(rate, 0.5, 1, 2) for group, rate in decayed})
        leading = _best_by_group(second) or leading
        two = _with_ordinary(leading[:2], leading)
        last = self._rung(LAST, {one.group: self._around(one.rate, 0.5, 1) for one in two})
        return _best_by_group([*second, *last]) or leading

    def _around(self, rate: float, *factors: float) -> list[float]:
        return [rate * factor for factor in factors] if self.budget.finer else [rate]

    def _rung(self, rung: Rung, entries: dict[Group, Sequence[float]]) -> list[Tried]:
        """Run the settings of a rung; some are skipped if time has run out."""
        found = self.tried.setdefault(rung.name, [])
        steps = whole_rounds(self.budget.steps * rung.share)
        seeds = [self.seed + number for number in range(self.budget.seeds[rung.number])]
        leader: Tried | None = None
        for number, (group, rates) in enumerate(entries.items(), start=1):
            if self.trainer.seconds > self.budget.seconds and any(self.tried.values()):
                self.skipped += 1
                continue
            name = f"{rung.name}, {group.key}, {group.net}" + (
                f", decay {group.weight_decay:g}" * bool(group.weight_decay)
            )
            found += self.trainer.train(name, group, rates, steps, seeds)
            best = max(found, key=lambda one: one.value)
            if best is not leader or number == len(entries):
                self.say(
                    f"{rung.name} rung, {number} of {len(entries)}: best so far is {best.group.title}, learning rate "
                    f"{best.rate:g}, {deciding_metric(best.task).title} {best.value:.4f}"
                )
            leader = best
        return found


def _best_by_group(tried: Sequence[Tried]) -> list[Tried]:
    """Return the best setting of each group, the best group first; of equals, the first that was tried."""
    best: dict[tuple[str, str], Tried] = {}
    for one in tried:
        place = (one.group.key, one.group.net)
        if place not in best or one.value > best[place].value:
            best[place] = one
    return sorted(best.values(), key=lambda one: -one.value)


def _with_ordinary(chosen: Sequence[Tried], leading: Sequence[Tried]) -> list[Tried]:
    """Add the best setting of ordinary federated learning, unless it is among the chosen ones."""
    ordinary = [one for one in leading if one.group.key in ORDINARY]
    missing = ordinary[:1] if not any(one.group.key in ORDINARY for one in chosen) else []
    return [*chosen, *missing]
