"""Compare ways to compute the gradients of W3's network for several clients with the one that fedcso uses.

    python -m benchmarks.cohorts

Every client has parameters and 40 pictures of its own. fedcso gives each client to one of as many threads as there are
cores; that the gradients are the same is checked first.
"""

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.attempts import PICTURES, channels_last, gradient_of, network
from benchmarks.results import save
from benchmarks.timing import Alternatives, as_rows, describe_machine, interleave, report
from fedcso.core.tree import Tree, leaves, map_leaves, split, stack
from fedcso.core.workers import cores, one_thread, pool
from fedcso.models.functional import Functional

CLIENTS, TOGETHER = 16, 4
"""The clients of a step, and how many of them share one matrix product."""

USUAL = "one client after the other in each thread, as fedcso does it"
Gradients = list[list[torch.Tensor]]
Client = tuple[Tree, torch.Tensor]


def make_clients() -> list[Client]:
    """Return the parameters and pictures of every client."""
    usual = Functional(network)
    rngs = [torch.Generator().manual_seed(number) for number in range(CLIENTS)]
    return [
        (
            map_leaves(torch.Tensor.requires_grad_, usual.init(rng)),
            channels_last(torch.randn(PICTURES, 3, 32, 32, generator=rng)),
        )
        for rng in rngs
    ]


def one_by_one(workers: ThreadPoolExecutor) -> Callable[[Sequence[Client]], Gradients]:
    """Return a function that computes each client's gradient in the next free thread."""
    gradient = gradient_of(Functional(network).apply)
    return lambda clients: list(workers.map(lambda client: gradient(*client), clients))


def in_one_product(workers: ThreadPoolExecutor) -> Callable[[Sequence[Client]], Gradients]:
    """Return a function that unfolds several clients' pictures and multiplies them with their kernels at once."""

    def found(clients: Sequence[Client]) -> Gradients:
        groups = [clients[first : first + TOGETHER] for first in range(0, len(clients), TOGETHER)]
        return [one for group in workers.map(_gradients_in_one_product, groups) for one in group]

    return found


def _gradients_in_one_product(clients: Sequence[Client]) -> Gradients:
    x = map_leaves(lambda leaf: leaf.detach().requires_grad_(), stack([x for x, _ in clients]))
    scores = _scores(x, torch.stack([pictures for _, pictures in clients]))
    gradients = torch.autograd.grad(scores.square().mean((1, 2)).sum(), leaves(x))
    return [list(one) for one in zip(*(split(leaf, (len(clients),)) for leaf in gradients), strict=True)]


def _scores(x: Tree, pictures: torch.Tensor) -> torch.Tensor:
    """Return the scores (client, picture, 1) of pictures (client, picture, …) by each client's own parameters."""
    features = pictures
    for place, layer in enumerate(network()):
        if isinstance(layer, nn.Conv2d):
            kernel, bias = x[f"{place}.weight"].flatten(2), x[f"{place}.bias"]
            patches = F.unfold(features.flatten(0, 1), layer.kernel_size, padding=int(layer.padding[0]))
            patches = patches.reshape(*features.shape[:2], *patches.shape[1:])
            found = kernel.unsqueeze(1) @ patches + bias[:, None, :, None]
            features = found.reshape(*found.shape[:-1], *features.shape[-2:])
        elif isinstance(layer, nn.Linear):
            weight, bias = x[f"{place}.weight"], x[f"{place}.bias"]
            features = torch.baddbmm(bias.unsqueeze(1), features, weight.transpose(1, 2))
        else:
            found = layer(features.flatten(0, 1))
            features = found.reshape(*features.shape[:2], *found.shape[1:])
    return features


def pinned_pool() -> ThreadPoolExecutor:
    """Return a pool whose threads stay on a core each."""
    numbers = iter(sorted(os.sched_getaffinity(0)))

    def start() -> None:
        torch.set_num_threads(1)
        os.sched_setaffinity(0, {next(numbers)})  # of this thread only

    return ThreadPoolExecutor(cores(), initializer=start)


def main(quick: bool = False) -> None:
    """Check that all ways agree, and time them in turn."""
    describe_machine()
    clients = make_clients()
    with one_thread(), pool() as workers, pinned_pool() as pinned:
        ways = {
            USUAL: one_by_one(workers),
            "the same, each thread pinned to a core": one_by_one(pinned),
            f"{TOGETHER} clients' pictures in one matrix product": in_one_product(workers),
        }
        expected = ways[USUAL](clients)
        work: Alternatives = {}
        for name, way in ways.items():
            for found, wanted in zip(way(clients), expected, strict=True):
                for one, other in zip(found, wanted, strict=True):
                    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
            times = 2 if quick else 5
            work[name] = (lambda f=way, n=times: [f(clients) for _ in range(n)], times)  # type: ignore[misc]
        timings = interleave(work, repetitions=2 if quick else 7)
    report(f"The gradients of W3's network at {CLIENTS} clients", timings, USUAL, "step")
    save("cohorts", step=as_rows(timings, USUAL))


if __name__ == "__main__":
    main("--quick" in sys.argv)
