"""Methods with server optimisers, momentum at the server and shared preconditioners, line by line, in plain torch.

As in `tests.transcription`: nothing of the package is used but the samples, gradients are written out by hand, and x is
one tensor. All clients take part with equal weights.
"""

import torch

from tests.transcription import Gradient, Samples, Tensor, mean


def local_sgd(x: Tensor, batches: list, gradient: Gradient, alpha: float, prox: float = 0.0) -> Tensor:
    """The clients' part of FedAvg, or with a μ of FedProx (Li et al. 2020)."""
    start = x
    for batch in batches:
        x = x - alpha * (gradient(x, batch) + prox * (x - start))
    return x


def fedopt(
    x: Tensor,
    samples: Samples,
    gradient: Gradient,
    rounds: int,
    q: int,
    alpha: float,
    kind: str,
    eta: float,
    beta_1: float,
    beta_2: float,
    tau: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Reddi et al. 2021, Algorithm 2, with v_{−1} = τ². The final x, m and v."""
    m, v = torch.zeros_like(x), torch.full_like(x, tau**2)
    for r in range(rounds):
        ends = [
            local_sgd(x, [samples[t][n] for t in range(r * q, (r + 1) * q)], gradient, alpha)
            for n in range(len(samples[0]))
        ]
        delta = mean([end - x for end in ends])
        m = beta_1 * m + (1 - beta_1) * delta
        if kind == "adagrad":
            v = v + delta**2
        elif kind == "yogi":
            v = v - (1 - beta_2) * delta**2 * torch.sign(v - delta**2)
        else:
            v = beta_2 * v + (1 - beta_2) * delta**2
        x = x + eta * m / (torch.sqrt(v) + tau)
    return x, m, v


def fafed(
    x: Tensor,
    samples: Samples,
    gradient: Gradient,
    rounds: int,
    q: int,
    alpha: float,
    beta: float,
    beta_2: float,
    rho: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """STORM at the clients with a preconditioner D of the server's, held for a round. The final x, ū and V."""
    clients = range(len(samples[0]))
    v, d = torch.zeros_like(x), torch.ones_like(x)
    models, directions, before = [x for _ in clients], [None for _ in clients], [x for _ in clients]
    for t in range(rounds * q):
        for n in clients:
            batch, here = samples[t][n], models[n]
            new = gradient(here, batch)
            directions[n] = new if t == 0 else new + (1 - beta) * (directions[n] - gradient(before[n], batch))
            before[n], models[n] = here, here - alpha * directions[n] / d
        if (t + 1) % q == 0:
            x, u = mean(models), mean(directions)
            models, directions = [x for _ in clients], [u for _ in clients]
            v = beta_2 * v + (1 - beta_2) * u**2
            d = torch.sqrt(v) + rho
    return x, u, v


def mimelite(
    x: Tensor, samples: Samples, gradient: Gradient, rounds: int, q: int, alpha: float, beta: float
) -> tuple[Tensor, Tensor]:
    """Karimireddy et al. 2020, MimeLite with SGDm: the momentum is fixed in a round and made of gradients at its start.

    Where the paper has the full gradient at x, here is the mean over the round's batches; the first momentum is the
    client's first gradient. The final x and momentum.
    """
    clients = range(len(samples[0]))
    momentum = [gradient(x, samples[0][n]) for n in clients]
    for r in range(rounds):
        steps = range(r * q, (r + 1) * q)
        ends = []
        for n in clients:
            y = x
            for t in steps:
                y = y - alpha * (beta * gradient(y, samples[t][n]) + (1 - beta) * momentum[n])
            ends.append(y)
        at_start = mean([gradient(x, samples[t][n]) for n in clients for t in steps])
        renewed = beta * at_start + (1 - beta) * mean(momentum)
        x, momentum = mean(ends), [renewed for _ in clients]
    return x, momentum[0]


def mime(
    x: Tensor, samples: Samples, gradient: Gradient, rounds: int, q: int, alpha: float, beta: float
) -> tuple[Tensor, Tensor]:
    """Karimireddy et al. 2020, Mime with SGDm, with c measured on the batches of a round before each moving round."""
    clients = range(len(samples[0]))
    momentum = None
    for r in range(0, rounds, 2):
        c = mean([gradient(x, samples[t][n]) for n in clients for t in range(r * q, (r + 1) * q)])
        momentum = c if momentum is None else momentum
        ends = []
        for n in clients:
            y = x
            for t in range((r + 1) * q, (r + 2) * q):
                corrected = gradient(y, samples[t][n]) - gradient(x, samples[t][n]) + c
                y = y - alpha * (beta * corrected + (1 - beta) * momentum)
            ends.append(y)
        x, momentum = mean(ends), beta * c + (1 - beta) * momentum
    return x, momentum


def fed_glomo(
    x: Tensor, samples: Samples, gradient: Gradient, rounds: int, q: int, alpha: float, beta: float
) -> tuple[Tensor, Tensor]:
    """Das et al. 2022 without quantisation: the final x and U."""

    def path(start: Tensor, n: int, steps: range) -> Tensor:
        w = gradient(start, samples[steps[0]][n])
        before, here = start, start - alpha * w
        for t in steps[1:]:
            batch = samples[t][n]
            w = gradient(here, batch) + (w - gradient(before, batch))
            before, here = here, here - alpha * w
        return here

    clients = range(len(samples[0]))
    previous, u = x, None
    for r in range(rounds):
        steps = range(r * q, (r + 1) * q)
        delta = mean([x - path(x, n, steps) for n in clients])
        if u is None:
            u = delta
        else:
            delta_before = mean([previous - path(previous, n, steps) for n in clients])
            u = beta * delta + (1 - beta) * u + (1 - beta) * (delta - delta_before)
        previous, x = x, x - u
    return x, u


def page(x: Tensor, samples: Samples, gradient: Gradient, coins: list[bool], alpha: float) -> tuple[Tensor, Tensor]:
    """Li et al. 2021, Algorithm 1, with q = 1: the gradient estimate is averaged over clients. The final x and u."""
    before, u = x, torch.zeros_like(x)
    for coin, batches in zip(coins, samples, strict=False):
        new = mean([gradient(x, batch) for batch in batches])
        u = new if coin else u + new - mean([gradient(before, batch) for batch in batches])
        before, x = x, x - alpha * u
    return x, u
