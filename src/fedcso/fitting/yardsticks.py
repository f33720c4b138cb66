"""What one would have got otherwise: each site alone, all data in one place, and gradient-boosted trees.

The objective, network and settings are those of the chosen model. Pooled data get as many examples per step as all
sites together. Trees have settings of their own, chosen on validation data.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from fedcso.datasets.examples import Examples, pool_examples
from fedcso.datasets.tables.sites import Sites
from fedcso.fitting.thinning import choosing_rows
from fedcso.fitting.train import Trainer, Tried
from fedcso.fitting.trees import MOST_ROWS, fit_trees

MOST_SITES = 12
"""Of more sites, the largest are trained alone."""

Rank = Callable[[Examples], np.ndarray]
"""Examples → a score for each."""


@dataclass(frozen=True)
class Yardstick:
    """Something to compare the chosen model with: one model, or one for each of several sites."""

    name: str
    models: Sequence[Rank]
    needs_pooled_data: bool
    note: str = ""


def measure_yardsticks(chosen: Tried, trainer: Trainer, seed: int, say: Callable[[str], None]) -> list[Yardstick]:
    """Train everything that the chosen model is compared with."""
    sites, found = trainer.sites, []
    able = [name for name, data in zip(sites.names, sites.train, strict=True) if data.labels.any()]
    if len(sites.names) > 1:
        say("training on pooled data, for comparison")
        pooled = _train(trainer, "pooled", chosen, seed, "pooled")
        found.append(Yardstick("the same method on pooled data", [rank_with(pooled)], True, "the same settings"))
        some = _largest(sites, able)
        say(f"training at {len(some)} sites alone, for comparison")
        alone = [rank_with(_train(trainer, f"alone {number}", chosen, seed, name)) for number, name in enumerate(some)]
        note = "" if len(some) == len(able) else f"the {len(some)} largest of {len(able)} sites with positives"
        found.append(Yardstick("the same method at one site alone", alone, False, note))
    if len(sites.train[0].inputs.shape) == 2:  # trees are for tables
        say("training gradient-boosted trees, for comparison")
        found += _trees(sites, able, seed)
    return found


def rank_with(tried: Tried) -> Rank:
    """Return the function that scores examples by a trained model; it does not hold the data of the training."""
    score, model = tried.task.judge.rank, tried.model
    assert score is not None

    def rank(examples: Examples) -> np.ndarray:
        scores, _ = score(model, examples)
        return np.asarray(scores.double().cpu().numpy())

    return rank


def _train(trainer: Trainer, name: str, chosen: Tried, seed: int, train_on: str) -> Tried:
    (tried,) = trainer.train(name, chosen.group, [chosen.rate], chosen.total_steps, [seed], train_on)
    return tried


def _largest(sites: Sites, names: Sequence[str]) -> list[str]:
    size = {name: len(data.labels) for name, data in zip(sites.names, sites.train, strict=True)}
    kept = set(sorted(names, key=lambda name: -size[name])[:MOST_SITES])
    return [name for name in names if name in kept]


def _trees(sites: Sites, able: Sequence[str], seed: int) -> list[Yardstick]:
    """Return trees on pooled data and at single sites; the sites together use as many rows as the pooled data."""

    def note(most: int, *numbers: int) -> str:
        return f"on {most:,} of {max(numbers):,} training rows" if max(numbers) > most else ""

    sizes = [len(data.labels) for data in sites.train]
    pooled = fit_trees(pool_examples(sites.train), choosing_rows(sites.validation), seed)
    found = []
    if pooled is not None:
        name = "gradient-boosted trees on pooled data"
        found.append(Yardstick(name, [_rank_rows(pooled)], True, note(MOST_ROWS, sum(sizes))))
    if len(sites.names) < 2:
        return found
    places = [sites.names.index(name) for name in _largest(sites, able)]
    most = MOST_ROWS // max(len(places), 1)
    alone = [fit_trees(sites.train[place], choosing_rows([sites.validation[place]]), seed, most) for place in places]
    if models := [_rank_rows(score) for score in alone if score is not None]:
        at_sites = note(most, *(sizes[place] for place in places))
        found.append(Yardstick("gradient-boosted trees at one site alone", models, False, at_sites))
    return found


def _rank_rows(score: Callable[[np.ndarray], np.ndarray]) -> Rank:
    def rank(examples: Examples) -> np.ndarray:
        return score(torch.as_tensor(examples.inputs).flatten(1).numpy())

    return rank
