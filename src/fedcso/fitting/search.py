"""Successive halving on validation data: many settings for few steps, the best of them for more.

    first    all objectives × networks × learning rates                                   1 seed    T/4 steps
    second   the best third, with learning rates ½, 1 and 2 times the best one,
             with weight decays 0, 0.001 and 0.01                                         2 seeds   T/2 steps
    last     the best two, with learning rates ½ and 1 times the best one                 3 seeds   T steps
    longer   the winner, while it still improves and time is left                         3 seeds   4T, 16T steps

(If steps are expensive, fewer settings have fewer learning rates and one seed: `fedcso.fitting.budget`.)
The better kind of ordinary federated learning is always among those that go on, for comparison. A setting is worth the
validation value of its chosen iterates (`fedcso.engines.choice`), mean over seeds. Within a rung all settings have the
same number of steps and see the same number of examples. Settings of all rungs but the first compete in the end,
because more steps are not always better: small data are overfitted.

A rung that takes longer than its share of the time is cut off, but in each rung the best setting so far is trained. So
on a slow machine fewer settings are tried, and the chosen one still has all its steps.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fedcso.engines.choice import deciding_metric
from fedcso.fitting.budget import FIRST, LAST, SECOND, Budget, Rung
from fedcso.fitting.objectives import ORDINARY
from fedcso.fitting.train import Group, Trainer, Tried, whole_rounds

LONGER = 4
"""By which factor the steps of the winner grow."""


@dataclass
class Search:
    """A search over objectives, networks and their settings."""

    trainer: Trainer
    budget: Budget
    seed: int
    """The first seed of runs."""
    say: Callable[[str], None]
    """Shows a line on what leads."""
    tried: dict[str, list[Tried]] = field(default_factory=dict)
    """All settings, by rung."""
    skipped: int = 0
    """The number of groups that were not tried because time had run out."""
    spent: float = 0.0
    """The modelled seconds of all runs."""
    unfinished: bool = False
    """True if the winner was still improving and there was no time to train it for longer."""

    def find(self) -> list[Tried]:
        """Run all rungs; return the best setting of each group that came far enough, best first."""
        everything = [Group(key, net) for key in self.budget.objectives for net in self.budget.nets]
        leading = _best_by_group(self._rung(FIRST, dict.fromkeys(everything, self.budget.rates)))
        third = _with_ordinary(leading[: max(2, math.ceil(len(leading) / 3))], leading)
        decayed = [(replace(one.group, weight_decay=decay), one.rate) for one in third for decay in self.budget.decays]
        second = self._rung(SECOND, {group: self._around(rate, 0.5, 1, 2) for group, rate in decayed})
        leading = _best_by_group(second) or leading
        best = _with_ordinary(leading[: 2 if self.budget.decays else 1], leading)
        last = self._rung(LAST, {one.group: self._around(one.rate, 0.5, 1) for one in best})
        return self._train_longer(_best_by_group([*second, *last]), last)

    def _train_longer(self, ranked: list[Tried], longest: list[Tried]) -> list[Tried]:
        """Train the winner for more steps, as long as that makes it better; ordinary federated learning gets as many.

        `longest` are the settings with the most steps so far.
        """
        times = 1
        while ranked[0].improving and any(one is ranked[0] for one in longest):
            times *= LONGER
            rung = LAST._replace(name=f"{times} times as long", share=times)
            groups = {one.group: [one.rate] for one in _with_ordinary(ranked[:1], ranked)}
            if max(self.spent, self.trainer.seconds) + self._cost(rung, groups) > self.budget.seconds:
                self.unfinished = True
                break
            longest = self._rung(rung, groups)
            ranked = _best_by_group([*ranked, *longest])
        return ranked

    def _around(self, rate: float, *factors: float) -> list[float]:
        return [rate * factor for factor in factors] if self.budget.finer else [rate]

    def _steps(self, share: float) -> int:
        return whole_rounds(self.budget.steps * share)

    def _cost(self, rung: Rung, entries: Mapping[Group, Sequence[float]]) -> float:
        """Return the modelled seconds of a rung."""
        runs = sum(len(rates) for rates in entries.values()) * self.budget.seeds[rung.number]
        return runs * self.budget.cost.of_run(self._steps(rung.share), rung.evaluations)

    def _rung(self, rung: Rung, entries: Mapping[Group, Sequence[float]]) -> list[Tried]:
        """Run the settings of a rung; if its time has run out, only the first of them."""
        found = self.tried.setdefault(rung.name, [])
        steps = self._steps(rung.share)
        seeds = [self.seed + number for number in range(self.budget.seeds[rung.number])]
        self.spent += self._cost(rung, entries)
        leader: Tried | None = None
        for number, (group, rates) in enumerate(entries.items(), start=1):
            if found and self.trainer.seconds > rung.until * self.budget.seconds:
                self.skipped += 1
                continue
            name = f"{rung.name}, {group.key}, {group.net}" + (
                f", decay {group.weight_decay:g}" * bool(group.weight_decay)
            )
            found += self.trainer.train(name, group, rates, steps, seeds, evaluations=rung.evaluations)
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
