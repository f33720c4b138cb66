"""Shared by several test modules: settings of every algorithm, small problems, engines, and comparisons."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import nn

from fedcso import engines
from fedcso.algorithms import ALGORITHMS, FCSGM
from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.estimator import Estimator
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.projections import ball, box
from fedcso.core.streams import DATA, stream
from fedcso.core.task import Task
from fedcso.core.topology import SERVER
from fedcso.core.trace import Trace
from fedcso.core.tree import Tree, leaves, named_leaves
from fedcso.engines import run, threads
from fedcso.engines.job import Job
from fedcso.estimators.plain import plain
from fedcso.problems import AUPRC, AUROC, Classification, CrossEntropy, InvariantLogistic, NestedQuadratic
from fedcso.problems.auroc import auroc_judge
from fedcso.problems.classification import Examples, classification_judge
from fedcso.problems.invariant_logistic import ACCURACY, measure_accuracy
from fedcso.problems.personalised import Personalised
from fedcso.problems.robust import Robust
from fedcso.problems.scores import Scores, ranking_judge
from tests.least_squares import CLIENTS, LogMeanExp

# ------------------------------------------------------------------------------------ algorithms

VALUES = {
    "learning_rate": 0.05,
    "momentum": 0.3,
    "tracking": 0.4,
    "period": 3,
    "large_batch": 5,
    "proximity": 0.3,
    "stage_steps": 5,
    "server_rate": 0.5,
    "server_momentum": 0.5,
    "server_decay": 0.6,
    "adaptivity": 0.1,
    "prox_weight": 0.5,
    "floor": 0.5,
    "global_momentum": 0.3,
    "base": FCSGM(learning_rate=0.05, momentum=0.3),
    "normalising": 0.6,
    "dual_rate": 0.8,
}
"""Hyper-parameters for short runs of small problems; others keep their defaults."""


def setting_of(kind: type[Algorithm]) -> Algorithm:
    """Return a method with settings for tests."""
    return kind(**{field.name: VALUES[field.name] for field in fields(kind) if field.name in VALUES})


SETTINGS: dict[str, Algorithm] = {name: setting_of(kind) for name, kind in ALGORITHMS.items()}
"""A setting of every method in `fedcso.algorithms`: a new row there is enough to run the whole contract suite."""


@cache
def runs_on_one_machine_only(algorithm: Algorithm) -> bool:
    """Return whether the method refuses several clients."""
    try:
        algorithm.check(Plan(local_steps=1), FINITE["few_points"].problem, FINITE["few_points"].clients)
    except InvalidValue:
        return True
    except FedcsoError:  # it refuses the problem
        return False
    return False


# -------------------------------------------------------------------------------------- problems


Case = Task
"""A problem with data for its clients, and data to evaluate on."""


@cache
def cases_for(algorithm: Algorithm) -> dict[str, Case]:
    """Return all problems that a method accepts; those of few methods only if it accepts no others."""
    for cases in (CASES | FINITE | SADDLES, OF_FEW_METHODS):
        if accepted := {name: case for name, case in cases.items() if _accepted(algorithm, case)}:
            return accepted
    return {}


def _accepted(algorithm: Algorithm, case: Case) -> bool:
    case, plan = for_method(algorithm, case, Plan(local_steps=2))
    try:
        algorithm.check(plan, case.problem, case.clients)
    except FedcsoError:
        return False
    return True


def in_turn(table: Mapping[str, Any], first: int, number: int) -> list[tuple[str, Any]]:
    """Return so many rows of a table from a first one on, beginning again after the last.

    Tests that don't need every combination take different rows for each method, so that all rows occur.
    """
    rows = list(table.items())
    return [rows[(first + k) % len(rows)] for k in range(number)]


def engines_for(algorithm: Algorithm, codec: Codec = full) -> list[str]:
    """Return the engines that can run a method with a codec."""
    return [engine for engine in ENGINES if (algorithm.stacks and codec.stacks) or not runs_grids(engine)]


def for_method(algorithm: Algorithm, case: Case, plan: Plan) -> tuple[Case, Plan]:
    """Return the case and plan, reduced to what the method requires: a single machine, single steps, or everyone."""
    if algorithm.topology != SERVER:
        return case, replace(plan, local_steps=1, participation=1.0, weights=None)
    if runs_on_one_machine_only(algorithm):
        return replace(case, clients=case.clients[:1]), replace(plan, local_steps=1, participation=1.0)
    try:
        algorithm.check(plan, case.problem, case.clients)
    except InvalidValue as refused:
        return case, replace(plan, local_steps=1) if refused.field == "local_steps" else plan
    except FedcsoError:
        pass
    return case, plan


@dataclass(frozen=True)
class InBall(NestedQuadratic):
    """The nested quadratic on a ball that excludes its optimum, without support for leading axes."""

    radius: float = 0.5
    broadcasts = False

    def project(self, x: torch.Tensor) -> torch.Tensor:
        return ball(x, self.radius)


class Numbered(NamedTuple):
    """ξ together with its index among the client's."""

    number: torch.Tensor
    point: torch.Tensor


@dataclass(frozen=True)
class FewPoints(NestedQuadratic):
    """The nested quadratic with finitely many ξ: a client's data are its points, drawn with replacement."""

    exact = None

    def points(self, sizes: tuple[int, ...]) -> list[torch.Tensor]:
        rng = stream(0, DATA, 0)
        return [1 + torch.randn(size, self.dimension, generator=rng, dtype=self.dtype) for size in sizes]

    def sample_outer(self, data: torch.Tensor, rng: torch.Generator, shape: tuple[int, ...]) -> Numbered:
        number = torch.randint(len(data), shape, generator=rng)
        return Numbered(number, data[number])

    def sample_inner(self, data: torch.Tensor, rng: torch.Generator, xi: Numbered, m: int) -> torch.Tensor:
        return super().sample_inner(data, rng, xi.point, m)

    def outer(self, y: torch.Tensor, xi: Numbered) -> torch.Tensor:
        return super().outer(y, xi.point)

    def size(self, data: torch.Tensor) -> int:
        return len(data)

    def outer_count(self, data: torch.Tensor) -> int:
        return len(data)

    def which(self, xi: Numbered) -> torch.Tensor:
        return xi.number


def few_points(sizes: tuple[int, ...] = (3, 5, 4, 6)) -> Case:
    problem = FewPoints(dimension=3)
    return Case(problem, problem.points(sizes))


def nested_quadratic(clients: int = 4) -> Case:
    problem = NestedQuadratic(dimension=3)
    return Case(problem, problem.centres(clients))


def invariant_logistic(clients: int = 4, unlike: float = 0.0) -> Case:
    problem = InvariantLogistic(dimension=3, penalty=0.01, dtype=torch.float64)
    sources = problem.clients(clients, unlike_truth=unlike, unlike_points=unlike)
    return Case(
        problem,
        sources,
        problem.test_points(sources, number=100),
        judge=Judge(measure_accuracy, [ACCURACY], broadcasts=True),
    )


def in_ball(clients: int = 4) -> Case:
    problem = InBall(dimension=3)
    return Case(problem, problem.centres(clients))


def classification(sizes: tuple[int, ...] = (3, 7, 12, 5), features: int = 4, classes: int = 3) -> Case:
    """Return random labelled points, in different numbers for each client, and a linear model."""
    rng = torch.Generator().manual_seed(0)

    def examples(number: int) -> Examples:
        inputs = torch.randn(number, features, generator=rng, dtype=torch.float64)
        return Examples(inputs, torch.randint(classes, (number,), generator=rng))

    problem = Classification(partial(nn.Linear, features, classes, dtype=torch.float64))
    return Case(problem, [examples(size) for size in sizes], examples(20), judge=classification_judge(problem))


CASES: dict[str, Case] = {
    "nested_quadratic": nested_quadratic(),
    "invariant_logistic": invariant_logistic(),
    "invariant_logistic_unlike": invariant_logistic(unlike=0.5),
    "classification": classification(),
    "in_ball": in_ball(),
}


def rare_positives(kind: type[Problem], *options: Any) -> Case:
    """Return random points with a few positives and a linear model; one client has positives only."""
    rng = torch.Generator().manual_seed(1)

    def examples(number: int, positives: int) -> Examples:
        labels = (torch.arange(number) < positives).long()
        return Examples(torch.randn(number, 4, generator=rng, dtype=torch.float64) + labels.unsqueeze(1), labels)

    problem = kind(Scores(partial(nn.Linear, 4, 1, dtype=torch.float64)), *options)
    clients = [examples(6, 2), examples(9, 1), examples(12, 4), examples(5, 5)]
    judge = auroc_judge(problem) if kind is AUROC else ranking_judge(problem.scores)
    return Case(problem, clients, examples(20, 5), judge=mean_score_judge(judge))


def mean_score_judge(ranking: Judge) -> Judge:
    """Return a judge of mean scores: they follow every change of x, and cost far less than average precision."""

    def evaluate(x: Tree, data: Examples) -> dict[str, Any]:
        scores, labels = ranking.rank(x, data)
        positive = labels == 1
        return {"margin": scores[positive].mean() - scores[~positive].mean(), "score": scores.mean()}

    return replace(ranking, evaluate=evaluate, metrics=[Metric("margin", higher_is_better=True)], select="margin")


CASES["cross_entropy"] = rare_positives(CrossEntropy, 3.0)

FINITE: dict[str, Case] = {"few_points": few_points(), "auprc": rare_positives(AUPRC)}
"""Problems with finitely many ξ."""

SADDLES: dict[str, Case] = {"auroc": rare_positives(AUROC, 0.3)}
"""Problems with a dual variable."""


def personalised(inner_steps: int = 1, **options: Any) -> Case:
    """Return the case of classification with adaptation to the clients."""
    case = classification()
    return replace(case, problem=Personalised(case.problem, 0.3, inner_steps, **options))


def robust(temperature: float = 0.5) -> Case:
    """Return the case of classification with weights of the clients."""
    case = classification()
    return replace(case, problem=Robust(case.problem, temperature, level=1.0))


OF_FEW_METHODS: dict[str, Case] = {
    "personalised": personalised(),
    "without_adaptation": personalised(inner_steps=0),
    "robust": robust(),
    "log_mean_exp": Case(LogMeanExp(), CLIENTS),
}
"""Problems that certain methods require."""


@dataclass(frozen=True)
class Clock(Problem):
    """x counts the steps, and a client breaks at the step that is its data.

    f(y) = −y for every client, so that with learning rate 1 and x_0 = 0 the iterate of step t is t.
    From its step on, a client's loss is NaN, or its gradient is infinite while its loss is finite.
    """

    breaks: str = "loss"
    broadcasts = True

    def init(self, rng: torch.Generator) -> torch.Tensor:
        return torch.zeros(1, dtype=torch.float64)

    def sample_outer(self, data: float, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.full(shape, data, dtype=torch.float64)

    def sample_inner(self, data: float, rng: torch.Generator, xi: torch.Tensor, m: int) -> tuple[()]:
        return ()

    def inner(self, x: torch.Tensor, xi: torch.Tensor, eta: tuple[()]) -> torch.Tensor:
        return x.expand(*x.shape[:-1], xi.shape[-1])

    def outer(self, y: torch.Tensor, xi: torch.Tensor) -> torch.Tensor:
        late = y.detach() >= xi
        if self.breaks == "loss":
            return torch.where(late, math.nan, -y)
        factor = 1e200 * late.double()
        # The value is 0; the derivative is the square of the factor, which overflows.
        return -y + (y - y.detach()) * factor * factor


@dataclass(frozen=True)
class BoxedClock(Clock):
    """A clock whose projection turns an infinite step into a finite one."""

    def project(self, x: torch.Tensor) -> torch.Tensor:
        return box(x, -100.0, 100.0)


NEVER = math.inf


@dataclass(frozen=True)
class Unreliable(FewPoints):
    """The nested quadratic of few points, some of which are NaN, at random clients and steps."""

    rate: float = 0.05

    def sample_outer(self, data: torch.Tensor, rng: torch.Generator, shape: tuple[int, ...]) -> Numbered:
        xi = super().sample_outer(data, rng, shape)
        spoilt = torch.rand(*shape, 1, generator=rng) < self.rate
        return Numbered(xi.number, xi.point.masked_fill(spoilt, math.nan))


# --------------------------------------------------------------------------------------- engines

ENGINES = tuple(
    name for name, engine in engines.ENGINES.items() if not engine.over_ranks and name not in ("simulation", "compiled")
)
"""Every engine of one process, except `simulation`, which chooses among the others, and `compiled`, which takes long to
compile. A new engine is tested through its row in `fedcso.engines`."""


def runs_grids(engine: str) -> bool:
    """Return whether an engine runs several settings together, which it can't do with every method."""
    return engines.ENGINES[engine].runs_grids(Job(SETTINGS["FCSG"], CASES["nested_quadratic"], Plan()))


def run_on(engine: str, algorithm: Algorithm, case: Case, plan: Plan, seed: int = 0, **options: Any) -> Trace:
    """Run a method on an engine, given by name."""
    how = threads.engine(options.pop("workers")) if "workers" in options else engine
    return run(algorithm, case, plan, seed, engine=how, **options)


@Estimator
def differentiated(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """Return the losses of the plain estimator; as another estimator it uses no closed form."""
    return plain(problem, x, batch)


# ----------------------------------------------------------------------------------- comparisons

TOLERANCE = 1e-12
"""For float64 results that differ in the order of additions only."""

CLEARLY = 1e-3
"""The least difference that counts as one, for control experiments."""


def gap(a: Tree, b: Tree) -> float:
    """Return the largest difference between corresponding entries of two trees."""
    return max(float((p - q).abs().max()) for p, q in zip(leaves(a), leaves(b), strict=True))


def assert_close(actual: Tree, expected: Tree, tolerance: float = TOLERANCE) -> None:
    """Assert that two trees have the same structure and that their entries agree, absolutely or relatively."""
    for (name, p), (other_name, q) in zip(named_leaves(actual), named_leaves(expected), strict=True):
        assert name == other_name
        torch.testing.assert_close(p, q, rtol=tolerance, atol=tolerance, msg=lambda text, n=name: f"{n}: {text}")


def assert_rows_close(
    actual: Sequence[dict[str, float]], expected: Sequence[dict[str, float]], tolerance: float = TOLERANCE
) -> None:
    """Assert that two runs recorded the same evaluations, except for the time they took."""
    assert [list(row) for row in actual] == [list(row) for row in expected]
    for row, other in zip(actual, expected, strict=True):
        for name in row.keys() - {"seconds"}:
            equal = math.isclose(row[name], other[name], rel_tol=tolerance, abs_tol=tolerance)
            both_nan = math.isnan(row[name]) and math.isnan(other[name])
            assert equal or both_nan, f"{name}: {row[name]} and {other[name]}"


def assert_same_run(actual: Trace, expected: Trace, tolerance: float = TOLERANCE) -> None:
    """Assert that two traces agree in everything but time."""
    assert_close(actual.last, expected.last, tolerance)
    assert_close(actual.shared, expected.shared, tolerance)
    assert_close(actual.best, expected.best, tolerance)
    if expected.output is None:  # its step was not reached
        assert actual.output is None
    else:
        assert_close(actual.output, expected.output, tolerance)
    assert_rows_close(actual.rows, expected.rows, tolerance)
    assert_rows_close([actual.output_row], [expected.output_row], tolerance)
    assert actual.costs == expected.costs
    assert actual.participation == expected.participation
    assert [str(reason) for reason in actual.dropped] == [str(reason) for reason in expected.dropped]


def finite_difference(value: Any, x: torch.Tensor, step: float = 1e-5) -> torch.Tensor:
    """Return the gradient of a function of one vector by central differences, with an error of order step²."""
    columns = []
    for direction in torch.eye(len(x), dtype=x.dtype) * step:
        columns.append((value(x + direction) - value(x - direction)) / (2 * step))
    return torch.stack(columns)


def standard_error(draws: torch.Tensor) -> torch.Tensor:
    """Return the standard error of the mean over the first axis."""
    return draws.std(0) / math.sqrt(len(draws))
