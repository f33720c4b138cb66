"""A user's code that is right, and the same with one mistake each."""

import random
from dataclasses import dataclass, replace

import numpy as np
import torch

from fedcso import Algorithm, Estimator, Judge, Metric, Problem, Server, State, Task, stream
from fedcso.core.estimator import Drawn, draw_fixed_size
from fedcso.core.tree import map_leaves, norm


class Right(Problem):
    def init(self, rng):
        return torch.zeros(2)

    def sample_outer(self, data, rng, shape):
        return data[torch.randint(len(data), shape, generator=rng)]

    def sample_inner(self, data, rng, xi, m):
        return xi.unsqueeze(-2) + torch.randn(*xi.shape[:-1], m, 2, generator=rng)

    def inner(self, x, xi, eta):
        return eta.mean(-2) - x

    def outer(self, y, xi):
        return (1 + y.square().sum(-1)).sqrt()


def task(problem: Problem | None = None, **more) -> Task:
    clients = [torch.randn(20, 2, generator=stream(0, n, 0)) + 3 for n in range(3)]
    return Task(problem or Right(), clients, **more)


# ------------------------------------------------------------------------------- problems with a mistake


class MeanOverXi(Right):
    def inner(self, x, xi, eta):
        return eta.mean(0) - x


class MeanOverXiKept(Right):
    def inner(self, x, xi, eta):
        return eta.mean(0, keepdim=True) - x


class NoMean(Right):
    def inner(self, x, xi, eta):
        return (eta - x).flatten(1)


class Sum(Right):
    def inner(self, x, xi, eta):
        return eta.sum(-2) - x


class Largest(Right):
    def inner(self, x, xi, eta):
        return eta.amax(-2) - x


class ScalarOuter(Right):
    def outer(self, y, xi):
        return super().outer(y, xi).mean()


class RepeatedMean(Right):
    def outer(self, y, xi):
        losses = super().outer(y, xi)
        return losses.mean().expand_as(losses)


class OneMore(Right):
    def sample_inner(self, data, rng, xi, m):
        return super().sample_inner(data, rng, xi, m + 1)


class OneLess(Right):
    def sample_inner(self, data, rng, xi, m):
        return super().sample_inner(data, rng, xi, max(m - 1, 1))


class WrongLead(Right):
    def sample_outer(self, data, rng, shape):
        return super().sample_outer(data, rng, shape[::-1])


class TorchGlobal(Right):
    def sample_inner(self, data, rng, xi, m):
        return xi.unsqueeze(-2) + torch.randn(*xi.shape[:-1], m, 2)


class NumpyGlobal(Right):
    def sample_outer(self, data, rng, shape):
        return data[torch.from_numpy(np.random.randint(len(data), size=shape))]


class PythonGlobal(Right):
    def init(self, rng):
        return torch.full((2,), random.random())


class Unseeded(Right):
    def sample_outer(self, data, rng, shape):
        return data[torch.from_numpy(np.random.default_rng().integers(len(data), size=shape))]


class NoisyInner(Right):
    def inner(self, x, xi, eta):
        return super().inner(x, xi, eta) + torch.randn(2)


class WholeNumbers(Right):
    def init(self, rng):
        return torch.zeros(2, dtype=torch.int64)


class NotTensor(Right):
    def init(self, rng):
        return np.zeros(2)


class LogOfZero(Right):
    def outer(self, y, xi):
        return (y.square().sum(-1) * 0).log()


class Detached(Right):
    def inner(self, x, xi, eta):
        return eta.mean(-2) - x.detach() + 0 * x


class HalfDetached(Right):
    def outer(self, y, xi):
        return y.square().sum(-1) * (1 + y.detach().square().sum(-1))


class WrongFormula(Right):
    def closed_form(self, x, xi, eta):
        return self.outer(self.inner(x, xi, eta), xi).mean(), torch.ones(2)


class WrongExact(Right):
    def exact(self, x, clients, weights):
        return x.square().sum(), x


class Moving(Right):
    def project(self, x):
        return x / 2


class Crashing(Right):
    def inner(self, x, xi, eta):
        return eta.mean(-2) @ x.reshape(1, 2)


class Counting(Right):
    """Its samples depend on how often it was asked."""

    calls = 0

    def sample_outer(self, data, rng, shape):
        self.calls += 1
        return super().sample_outer(data, rng, shape) + self.calls


class FalselyBroadcast(Right):
    """Says that it accepts axes in front of x, but takes x for that of one client."""

    broadcasts = True

    def inner(self, x, xi, eta):
        return eta.mean(-2) - x.reshape(-1, 2)[:1]


def crashing():
    return task(Crashing())


def new_data_each_time():
    return Task(Right(), [torch.randn(20, 2) for _ in range(3)])


# ----------------------------------------------------------------------------------------------- metrics


def evaluate(x, data):
    return {"accuracy": torch.sigmoid(x.sum()), "loss": (x - data).norm()}


ACCURACY = Metric("accuracy", higher_is_better=True, share=True)


def judged(*metrics: Metric, evaluate=evaluate, **more) -> Task:
    return task(test=torch.ones(2), judge=Judge(evaluate, metrics=metrics, **more))


def typo_in_select():
    return judged(ACCURACY, select="acuracy")


# ----------------------------------------------------------------------------------------------- methods


@dataclass(frozen=True)
class Method(Algorithm):
    learning_rate: float = 0.01

    def step(self, state, oracle, batch, t):
        x = state.shared["x"]
        return State({"x": oracle.move(x, oracle.grad(x, batch), self.learning_rate)})


@dataclass
class NotFrozen(Algorithm):
    learning_rate: float = 0.01
    step = Method.step


@dataclass(frozen=True)
class WithoutDefault(Algorithm):
    friction: float
    step = Method.step


@dataclass(frozen=True)
class ReturnsDict(Method):
    def step(self, state, oracle, batch, t):
        return {"x": state.shared["x"]}


@dataclass(frozen=True)
class ForgetsModel(Method):
    def step(self, state, oracle, batch, t):
        return State({"u": state.shared["x"]})


@dataclass(frozen=True)
class InPlace(Method):
    def step(self, state, oracle, batch, t):
        gradient = oracle.grad(state.shared["x"], batch)
        map_leaves(lambda x, u: x.sub_(u, alpha=0.01), state.shared["x"], gradient)
        return state


@dataclass(frozen=True)
class Standing(Method):
    def step(self, state, oracle, batch, t):
        oracle.grad(state.shared["x"], batch)
        return state


@dataclass(frozen=True)
class Normalised(Method):
    """Not elementwise: its norm is that of all settings and clients together."""

    def step(self, state, oracle, batch, t):
        x = state.shared["x"]
        gradient = oracle.grad(x, batch)
        length = norm(gradient)
        return State({"x": oracle.move(x, map_leaves(lambda u: u / length, gradient), self.learning_rate)})


@dataclass(frozen=True)
class Noisy(Method):
    def step(self, state, oracle, batch, t):
        state = super().step(state, oracle, batch, t)
        return State({"x": map_leaves(lambda x: x + torch.randn_like(x), state.shared["x"])})


@dataclass(frozen=True)
class Remembers(Method):
    """Keeps its momentum where no checkpoint finds it."""

    def init(self, x):
        object.__setattr__(self, "step_count", 0)
        return Server({"x": x})

    def step(self, state, oracle, batch, t):
        object.__setattr__(self, "step_count", self.step_count + 1)
        x = state.shared["x"]
        return State({"x": oracle.move(x, oracle.grad(x, batch), self.learning_rate * self.step_count)})


@dataclass(frozen=True)
class Refusing(Method):
    def check(self, plan, problem, clients):
        from fedcso import FedcsoError

        raise FedcsoError("not this problem")


# -------------------------------------------------------------------------------------------- estimators


@Estimator
def right(problem, x, batch):
    """Return the plain losses."""
    return problem.outer(problem.inner(x, batch.xi, batch.eta), batch.xi)


halved = Estimator(lambda problem, x, batch: 0.5 * right(problem, x, batch))
single = Estimator(lambda problem, x, batch: right(problem, x, batch).mean())
detached = Estimator(lambda problem, x, batch: right(problem, map_leaves(torch.Tensor.detach, x), batch) + _zero(x))
boasting = replace(right, bias_order=3)


def _zero(x):
    return 0 * (x if isinstance(x, torch.Tensor) else x["weight"]).sum()


def _draw_globally(problem, data, rng, steps, b, m):
    return draw_fixed_size(problem, data, torch.Generator().manual_seed(int(torch.randint(100, ()))), steps, b, m)


def _draw_for_nothing(problem, data, rng, steps, b, m):
    drawn = draw_fixed_size(problem, data, rng, steps, b, m)
    return Drawn(drawn.batch, drawn.costs * 0)


drawing_globally = replace(right, draw=_draw_globally)
uncounted = replace(right, draw=_draw_for_nothing)
