"""The algorithms as their papers print them, line by line, in plain torch.

Nothing of `fedcso.algorithms`, of its oracle or of its engines is used here: the loops are the papers',
gradients are written out by hand, x is one tensor. Only the samples are the package's, so that both can
be compared number by number.

Indices are the papers': `x[t][n]` is x_t^n. The samples of iteration t are `samples[t][n]`, those of
the initial batch `samples[0][n]`.
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from fedcso.core.estimator import sample
from fedcso.core.problem import Batch, split_steps
from fedcso.core.streams import stream
from fedcso.core.tree import Tree, index
from fedcso.engines.client import portions
from fedcso.engines.job import Job
from fedcso.problems import InvariantLogistic

Tensor = torch.Tensor
Gradient = Callable[[Tensor, Batch], Tensor]
Samples = list[list[Batch]]


def drawn(job: Job) -> Samples:
    """The batches that engines draw, by step and client, and those of a further round."""
    more = replace(job, plan=replace(job.plan, rounds=job.plan.rounds + 1))
    clients = range(len(job.clients))
    samples: Samples = [[None] * len(clients) for _ in range(more.plan.total_steps)]  # type: ignore[list-item]
    for r in range(more.plan.rounds):
        for n in clients:
            rng = stream(job.seed, n, r)
            for steps, b in portions(more, r):
                batch = sample(job.problem, job.clients[n], rng, len(steps), b, job.plan.inner_batch)
                for t, one in zip(steps, split_steps(batch, len(steps)), strict=True):
                    samples[t][n] = one
    return samples


def mean(tensors: list[Tensor]) -> Tensor:
    return torch.stack(tensors).mean(0)


# ------------------------------------------------------------------------- gradients, by hand


def quadratic_gradient(x: Tensor, batch: Batch) -> Tensor:
    """∇ ½‖η̄ ∘ x − ξ‖², averaged over ξ."""
    mean_eta = batch.eta.mean(1)
    return (mean_eta * (mean_eta * x - batch.xi)).mean(0)


def quadratic_inner(x: Tensor, batch: Batch) -> Tensor:
    """ĝ = η̄ ∘ x, averaged over ξ."""
    return (batch.eta.mean(1) * x).mean(0)


def quadratic_chain(x: Tensor, y: Tensor, batch: Batch) -> Tensor:
    """∇ĝᵀ∇f(y) = η̄ ∘ (y − ξ), averaged over ξ."""
    return (batch.eta.mean(1) * (y - batch.xi)).mean(0)


def penalty_gradient(problem: InvariantLogistic, x: Tensor) -> Tensor:
    """∇ λ Σ_i γx_i²/(1 + γx_i²)."""
    return problem.penalty * 2 * problem.sharpness * x / (1 + problem.sharpness * x**2) ** 2


def logistic_gradient(problem: InvariantLogistic) -> Gradient:
    """∇ log(1 + exp(−b η̄ᵀx)) + ∇r, averaged over ξ."""

    def gradient(x: Tensor, batch: Batch) -> Tensor:
        (a, label), mean_eta = batch.xi, batch.eta.mean(1)
        wrong = 1 / (1 + torch.exp(label * (mean_eta @ x)))
        return -(wrong * label) @ mean_eta / len(a) + penalty_gradient(problem, x)

    return gradient


def logistic_inner(x: Tensor, batch: Batch) -> Tensor:
    """ĝ = η̄ᵀx, averaged over ξ."""
    return (batch.eta.mean(1) @ x).mean()


def logistic_chain(problem: InvariantLogistic) -> Callable[[Tensor, Tensor, Batch], Tensor]:
    """∇ĝᵀ∇f(y) = −b η̄ / (1 + exp(by)), averaged over ξ, + ∇r."""

    def chain(x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        label = batch.xi.label
        slope = -label / (1 + torch.exp(label * y))
        return slope @ batch.eta.mean(1) / len(label) + penalty_gradient(problem, x)

    return chain


def softmax_gradient(x: Tensor, batch: Batch) -> Tensor:
    """∇ cross-entropy of a linear model, x = (weight | bias): (softmax − one-hot) inputᵀ, averaged."""
    inputs, labels = batch.xi
    inputs = torch.cat([inputs, torch.ones_like(inputs[:, :1])], 1)
    error = torch.softmax(inputs @ x.T, 1) - torch.nn.functional.one_hot(labels, len(x))
    return error.T @ inputs / len(labels)


def as_matrix(parameters: Tree) -> Tensor:
    """The parameters of a linear layer as (weight | bias)."""
    return torch.cat([parameters["weight"], parameters["bias"].unsqueeze(1)], 1)


# ------------------------------------------------------------------------ the paper's algorithms


def algorithm_1(
    x_0: Tensor,
    samples: Samples,
    gradient: Gradient,
    T: int,  # noqa: N803
    q: int,
    alpha: float,
    beta: float | None = None,
) -> tuple[list[list[Tensor]], list[list[Tensor]]]:
    """Algorithm 1: FCSG (the blue lines), or with a β FCSG-M (the green ones). All x_t^n and u_t^n."""
    N = len(samples[0])  # noqa: N806
    nothing = torch.full_like(x_0, torch.nan)
    x = [[nothing] * N for _ in range(T + 1)]
    u = [[nothing] * N for _ in range(T + 2)]
    # 2: Initialize
    for n in range(N):
        x[0][n] = x_0
        u[1][n] = gradient(x[0][n], samples[0][n])
    for t in range(1, T + 1):  # 3
        if t % q == 0:  # 5
            # 6: Server Update
            if beta is not None:
                u[t] = [mean(u[t])] * N  # 7 (green)
            x[t] = [mean([x[t - 1][n] - alpha * u[t][n] for n in range(N)])] * N  # 8
        else:  # 9
            for n in range(N):
                x[t][n] = x[t - 1][n] - alpha * u[t][n]  # 10
        for n in range(N):  # 4
            # 12, 13: draw
            estimate = gradient(x[t][n], samples[t][n])
            if beta is None:
                u[t + 1][n] = estimate  # 14 (blue)
            else:
                u[t + 1][n] = (1 - beta) * u[t][n] + beta * estimate  # 15 (green)
    return x, u


def algorithm_2(
    x_0: Tensor,
    samples: Samples,
    gradient: Gradient,
    T: int,  # noqa: N803
    q: int,
    alpha: float,
    beta: float,
) -> tuple[list[list[Tensor]], list[list[Tensor]]]:
    """Algorithm 2: Acc-FCSG-M. All x_t^n and u_t^n."""
    N = len(samples[0])  # noqa: N806
    nothing = torch.full_like(x_0, torch.nan)
    x = [[nothing] * N for _ in range(T + 1)]
    u = [[nothing] * N for _ in range(T + 2)]
    # 2: Initialize
    for n in range(N):
        x[0][n] = x_0
        u[1][n] = gradient(x[0][n], samples[0][n])
    for t in range(1, T + 1):  # 3
        if t % q == 0:  # 5
            # 6: Server Update
            u[t] = [mean(u[t])] * N  # 7
            x[t] = [mean([x[t - 1][n] - alpha * u[t][n] for n in range(N)])] * N  # 8
        else:  # 9
            for n in range(N):
                x[t][n] = x[t - 1][n] - alpha * u[t][n]  # 10
        for n in range(N):  # 4
            # 12, 13: draw
            here = gradient(x[t][n], samples[t][n])
            there = gradient(x[t - 1][n], samples[t][n])
            u[t + 1][n] = here + (1 - beta) * (u[t][n] - there)  # 14
    return x, u


# ----------------------------------------------------------------------------------- its baselines


def fedavg(
    x: Tensor,
    samples: Samples,
    gradient: Gradient,
    rounds: int,
    q: int,
    alpha: float,
    sizes: list[int],
) -> Tensor:
    """McMahan et al. 2017, Algorithm 1 with all clients: w ← Σ_k (n_k/n) w_k of what the clients trained."""
    for r in range(rounds):
        trained = []
        for n in range(len(samples[0])):
            w = x
            for t in range(r * q, (r + 1) * q):
                w = w - alpha * gradient(w, samples[t][n])
            trained.append(w)
        x = sum(size / sum(sizes) * w for size, w in zip(sizes, trained, strict=True))
    return x


def stem(
    x_0: Tensor,
    samples: Samples,
    gradient: Gradient,
    rounds: int,
    q: int,
    alpha: float,
    beta: float,
) -> tuple[Tensor, Tensor]:
    """Khanduri et al. 2021, Algorithm 1: directions d, models x, two-sided momentum a = β.

    d_{t+1} = ∇f(x_{t+1}; ξ_{t+1}) + (1 − a) ( d_t − ∇f(x_t; ξ_{t+1}) ); every q steps d and x are averaged.
    """
    N = len(samples[0])  # noqa: N806
    models, directions = [x_0] * N, [gradient(x_0, batch) for batch in samples[0]]
    for t in range(rounds * q):
        moved = [x - alpha * d for x, d in zip(models, directions, strict=True)]
        if (t + 1) % q == 0:
            directions = [mean(directions)] * N
            moved = [mean(moved)] * N
        averaged = directions[0]
        batches = samples[t + 1]
        directions = [
            gradient(new, batch) + (1 - beta) * (d - gradient(old, batch))
            for new, old, d, batch in zip(moved, models, directions, batches, strict=True)
        ]
        models = moved
    return models[0], averaged


def scaffold(
    x: Tensor,
    samples: Samples,
    gradient: Gradient,
    participants: list[list[int]],
    q: int,
    alpha: float,
) -> tuple[Tensor, Tensor]:
    """Karimireddy et al. 2020, Algorithm 1 with option II and a server step of 1. The final x and c."""
    N = len(samples[0])  # noqa: N806
    c = torch.zeros_like(x)
    c_i = [torch.zeros_like(x) for _ in range(N)]
    for r, chosen in enumerate(participants):
        changes_y, changes_c = [], []
        for i in chosen:
            y = x
            for t in range(r * q, (r + 1) * q):
                y = y - alpha * (gradient(y, samples[t][i]) - c_i[i] + c)
            c_plus = c_i[i] - c + (x - y) / (q * alpha)
            changes_y.append(y - x)
            changes_c.append(c_plus - c_i[i])
            c_i[i] = c_plus
        x = x + mean(changes_y)
        c = c + sum(changes_c) / N
    return x, c


def local_scgdm(
    x_0: Tensor,
    samples: Samples,
    inner: Callable[[Tensor, Batch], Tensor],
    chain: Callable[[Tensor, Tensor, Batch], Tensor],
    rounds: int,
    q: int,
    alpha: float,
    gamma: float,
    beta: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gao et al. 2022: Local-SCGDM, and with β = 1 Local-SCGD. The final averages of x, y and u."""
    N = len(samples[0])  # noqa: N806
    x, y, u = [x_0] * N, [None] * N, [None] * N
    for t in range(rounds * q):
        for n in range(N):
            batch = samples[t][n]
            value = inner(x[n], batch)
            y[n] = value if t == 0 else (1 - gamma) * y[n] + gamma * value
            z = chain(x[n], y[n], batch)
            u[n] = z if t == 0 else (1 - beta) * u[n] + beta * z
            x[n] = x[n] - alpha * u[n]
        if (t + 1) % q == 0:
            x, y, u = [mean(x)] * N, [mean(y)] * N, [mean(u)] * N
    return x[0], y[0], u[0]


def local_scgdm_of_the_published_code(
    x_0: Tensor,
    samples: Samples,
    inner: Callable[[Tensor, Batch], Tensor],
    chain: Callable[[Tensor, Tensor, Batch], Tensor],
    rounds: int,
    q: int,
    alpha: float,
    gamma: float,
    beta: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """The baseline in the code published with Wu et al. 2023: every ξ is blended with the last y by itself.

    y_i = (1 − γ) y + γ ĝ_i, z = (1/b) Σ ∇ĝ_iᵀ∇f_i(y_i), y = (1/b) Σ y_i. The final averages of x, y and u.
    """
    N = len(samples[0])  # noqa: N806
    x, y, u = [x_0] * N, [None] * N, [None] * N
    for t in range(rounds * q):
        for n in range(N):
            tasks = [index(samples[t][n], slice(i, i + 1)) for i in range(len(samples[t][n].eta))]
            blends, gradients = [], []
            for task in tasks:
                value = inner(x[n], task)
                blends.append(value if t == 0 else (1 - gamma) * y[n] + gamma * value)
                gradients.append(chain(x[n], blends[-1], task))
            y[n], z = mean(blends), mean(gradients)
            u[n] = z if t == 0 else (1 - beta) * u[n] + beta * z
            x[n] = x[n] - alpha * u[n]
        if (t + 1) % q == 0:
            x, y, u = [mean(x)] * N, [mean(y)] * N, [mean(u)] * N
    return x[0], y[0], u[0]


def sox(
    x_0: Tensor,
    samples: Samples,
    participants: list[list[int]],
    q: int,
    alpha: float,
    gamma: float,
    beta: float,
) -> tuple[Tensor, Tensor, list[dict[int, Tensor]]]:
    """Wang, Yang 2022, with local steps, on the nested quadratic of few points: the final x and u, and all y_i.

    y_i ← (1 − γ) y_i + γ η̄_i ∘ x for the i of a batch, z = (1/b) Σ_i η̄_i ∘ (y_i − ξ_i). Each client has its own y_i,
    and who does not take part keeps them.
    """
    x, u = x_0, torch.zeros_like(x_0)
    y: list[dict[int, Tensor]] = [{} for _ in samples[0]]
    for r, chosen in enumerate(participants):
        models, directions = [], []
        for n in chosen:
            x_n, u_n = x, u
            for t in range(r * q, (r + 1) * q):
                (numbers, points), mean_eta = samples[t][n].xi, samples[t][n].eta.mean(1)
                tracked = []
                for i, slope in zip(numbers.tolist(), mean_eta, strict=True):
                    value = slope * x_n
                    tracked.append((1 - gamma) * y[n][i] + gamma * value if i in y[n] else value)
                y[n].update(zip(numbers.tolist(), tracked, strict=True))
                z = mean([slope * (y_i - xi) for slope, y_i, xi in zip(mean_eta, tracked, points, strict=True)])
                u_n = z if t == 0 else (1 - beta) * u_n + beta * z
                x_n = x_n - alpha * u_n
            models.append(x_n)
            directions.append(u_n)
        x, u = mean(models), mean(directions)
    return x, u, y


def bspiderboost(
    x: Tensor, samples: Samples, gradient: Gradient, steps: int, period: int, alpha: float
) -> tuple[Tensor, Tensor]:
    """Hu et al. 2020, Algorithm 2, on one machine. The final x and u."""
    before, u = x, torch.zeros_like(x)
    for t in range(steps):
        (batch,) = samples[t]
        u = gradient(x, batch) if t % period == 0 else u + gradient(x, batch) - gradient(before, batch)
        before, x = x, x - alpha * u
    return x, u
