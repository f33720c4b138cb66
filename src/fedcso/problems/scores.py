"""What problems with rare positives share: a network that gives each example one score, and how scores are judged."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.core.judge import ByClient, Judge, Network
from fedcso.core.metric import Metric, Symptom
from fedcso.core.problem import Problem
from fedcso.core.task import Task
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples, pool_examples
from fedcso.datasets.tables.sites import Sites
from fedcso.models.functional import Functional, Model
from fedcso.models.score_nets import build_network

DEAD = 15.0
"""Beyond this a logit's sigmoid is 0 or 1 to six digits, and its slope is gone."""

PREVALENCE = Metric("prevalence", "share of positives", share=True, curve=False)
AVERAGE_PRECISION = Metric("average_precision", higher_is_better=True, share=True, chance=PREVALENCE.name)
AUROC = Metric("auroc", "AUROC", higher_is_better=True, share=True)
SATURATED = Metric(
    "saturated",
    "share of saturated scores",
    share=True,
    curve=False,
    tabulated=False,
    symptom=Symptom(
        above=0.5,
        says="of the scores are so large that their sigmoid has no slope left: single gradients were too long: set "
        "--clip (1, say), a smaller --learning-rate, or --itself 1",
    ),
)


@dataclass(frozen=True)
class Scores:
    """A network with one output, of which a high value says positive."""

    model: Model
    network: Functional = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "network", Functional(self.model))

    def logits(self, x: Tree, inputs: torch.Tensor) -> torch.Tensor:
        """One number for each example."""
        output = self.network.apply(x, as_input(inputs))
        if output.shape not in ((len(inputs),), (len(inputs), 1)):
            shape = "×".join(map(str, output.shape))
            raise FedcsoError(f"the network must have ONE output for each of {len(inputs)} examples, not {shape}")
        return output.reshape(len(inputs))


def ranking_judge(scores: Scores, weights: Callable[[Tree], Tree] = lambda x: x) -> Judge:
    """Return the judge of every problem that ranks examples by a network; `weights` finds the network's in x."""

    def rank(x: Tree, data: Examples) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the scores of examples, and their labels."""
        with torch.no_grad():
            parts = [scores.logits(weights(x), part) for part in torch.split(data.inputs, 1000)]
            return torch.cat(parts), data.labels

    def evaluate(x: Tree, data: Examples) -> dict[str, Any]:
        """Measure average precision and AUROC (undefined, nan, without both kinds of examples), and the chance line.

        `prevalence` is the average precision of random scores; `saturated` is the share of logits so large that a
        sigmoid's slope is gone: training on sigmoid scores then stands still.
        """
        if not len(data.labels):
            return dict.fromkeys([AVERAGE_PRECISION.name, AUROC.name, PREVALENCE.name], torch.nan)
        logits, labels = rank(x, data)
        return judged(logits, labels) | {SATURATED.name: (logits.abs() > DEAD).double().mean()}

    def network(x: Tree, data: Examples) -> Network:
        """Return the network with these parameters."""
        module = copy.deepcopy(scores.network.module)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(weights(x)[name])
        return Network(module, as_input(data.inputs[:2]))

    declared = [AVERAGE_PRECISION, AUROC, PREVALENCE, SATURATED]
    return Judge(evaluate, declared, select=AVERAGE_PRECISION.name, rank=rank, network=network)


def judged(scores: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """scikit-learn's average precision (not the trapezoid) and AUROC."""
    from sklearn.metrics import average_precision_score, roc_auc_score  # here, for it takes long to load

    truth, values = labels.cpu().numpy(), scores.double().cpu().numpy()
    positives = int(truth.sum())
    ranked = bool(torch.isfinite(scores).all())  # a model that has overflowed ranks nothing
    both = 0 < positives < len(truth)
    return {
        AVERAGE_PRECISION.name: float(average_precision_score(truth, values)) if ranked and positives else math.nan,
        AUROC.name: float(roc_auc_score(truth, values)) if ranked and both else math.nan,
        PREVALENCE.name: positives / len(truth),
    }


def as_input(inputs: torch.Tensor) -> torch.Tensor:
    """Bytes of pictures as numbers in [−1, 1]; other inputs are as they should be."""
    return inputs.float() / 127.5 - 1 if inputs.dtype == torch.uint8 else inputs


def scores_for(net: str, sites: Sites) -> Scores:
    """Return the scores of the network of that name, which is built for the sites' inputs."""
    return Scores(partial(build_network, net, sites.train[0].inputs.shape[1:]))


def share_of_positives(sites: Sites) -> float:
    """p, over all sites' training data."""
    if sites.positive_rate is not None:
        return sites.positive_rate
    labels = torch.cat([examples.labels for examples in sites.train])
    if not 0 < int(labels.sum()) < len(labels):
        raise FedcsoError("the training data have no positive example, or nothing else: there is nothing to learn")
    return float(labels.double().mean())


def task_of_sites(problem: Problem, judge: Judge, sites: Sites, train_on: str) -> Task:
    """The task of training on the sites (or on all data pooled, or on one site's) and being judged by all of them."""
    share_of_positives(sites)  # there must be both kinds
    names, train, notes = sites.names, sites.train, list(sites.notes)
    if train_on == "pooled":
        train, names = [pool_examples(train)], ["all"]
    elif train_on != "sites":
        if train_on not in names:
            raise UnknownName("train_on", train_on, ["sites", "pooled", *names])
        train, names = [train[names.index(train_on)]], [train_on]
    notes += [
        f"site {name} has nothing to train with (of its {len(data.labels)} training examples {int(data.labels.sum())} "
        "are positive): it takes part in evaluation only"
        for name, data in zip(names, train, strict=True)
        if not problem.trains(data)
    ]
    test = ByClient(pool_examples(sites.test), sites.test, sites.names)
    files = {"preparation.json": sites.preparation.to_json()} if sites.preparation else {}
    clients = [sites.variation.of(data) for data in train]
    return Task(problem, clients, test, pool_examples(sites.validation), judge, names, notes, files)
