"""Tasks with rare positives at several sites: what auprc, auroc and cross_entropy build from the same data."""

from functools import partial

import torch

from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.core.judge import ByClient, Judge
from fedcso.core.problem import Problem
from fedcso.core.task import Task
from fedcso.datasets.examples import pool_examples
from fedcso.datasets.tables.sites import Sites
from fedcso.models.score_nets import build_network
from fedcso.problems.scores import Scores


def build_scores(net: str, sites: Sites) -> Scores:
    """Return the scores of the network with that name, built for the sites' inputs."""
    return Scores(partial(build_network, net, sites.train[0].inputs.shape[1:]))


def share_of_positives(sites: Sites) -> float:
    """Return p, the share of positives in all sites' training data; raise `FedcsoError` if it is 0 or 1."""
    if sites.positive_rate is not None:
        return sites.positive_rate
    labels = torch.cat([examples.labels for examples in sites.train])
    positives = int(labels.sum())
    if not 0 < positives < len(labels):
        kind = "positive" if positives else "negative"
        raise FedcsoError(
            f"all {len(labels)} training examples are {kind}: check which labels are positive; both kinds are needed"
        )
    return float(labels.double().mean())


def make_site_task(problem: Problem, judge: Judge, sites: Sites, train_on: str) -> Task:
    """Return the task of training on all sites, on their pooled data or on one site, and testing on all of them."""
    share_of_positives(sites)  # raises unless there are both kinds
    names, train, notes, stands_for = sites.names, sites.train, list(sites.notes), 1
    if train_on == "pooled":
        stands_for = sum(problem.trains(data) for data in train)
        train, names = [pool_examples(train)], ["all"]
        notes.append(
            f"training on pooled data draws as many samples in each step as the {stands_for} sites that train would "
            "together"
        )
    elif train_on != "sites":
        if train_on not in names:
            raise UnknownName("train_on", train_on, ["sites", "pooled", *names])
        train, names = [train[names.index(train_on)]], [train_on]
    notes += [
        f"site {name} takes part in evaluation only: {int(data.labels.sum())} of its {len(data.labels)} training "
        "examples are positive"
        for name, data in zip(names, train, strict=True)
        if not problem.trains(data)
    ]
    test = ByClient(pool_examples(sites.test), sites.test, sites.names)
    files = {"preparation.json": sites.preparation.to_json()} if sites.preparation else {}
    clients = [sites.variation.of(data) for data in train]
    return Task(
        problem,
        clients,
        test,
        pool_examples(sites.validation),
        judge,
        names,
        notes,
        files,
        weights=sites.weights,
        stands_for=stands_for,
    )
