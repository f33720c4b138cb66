"""The verdict on m follows from bias, noise and ‖∇F‖: on numbers made by hand, and where all of them are known."""

import math
from typing import NamedTuple

import pytest
import torch

from fedcso import diagnose
from fedcso.core.costs import Costs
from fedcso.core.problem import Problem
from fedcso.core.streams import stream
from fedcso.problems import PROBLEMS, Information, NestedQuadratic
from fedcso.problems.conditional_squares import ConditionalSquares
from fedcso.theory.verdict import CONSEQUENCE, Diagnosis, Judgement, Magnitude, Size, percent

ENOUGH, FOR_NOW, TOO_SMALL, UNCLEAR = Judgement


def diagnosis(bias, noise, gradient=(1.0, 0.9, 1.1), m=8) -> Diagnosis:
    """Return a diagnosis of one m with the noise of a round, for 100 estimates in a round."""
    one = Magnitude(*(10 * noise,) * 3)
    return Diagnosis(Magnitude(*gradient), [Size(m, Magnitude(*bias), one)], 100, Costs())


@pytest.mark.parametrize(
    ("bias", "noise", "expected"),
    [
        ((0.05, 0.03, 0.07), 0.1, ENOUGH),
        ((0.05, 0.03, 0.07), 0.05, FOR_NOW),  # it may be above the noise
        ((0.05, 0.03, 0.07), 0.01, FOR_NOW),  # it is above the noise, and will remain
        ((0.09, 0.07, 0.11), 1.0, FOR_NOW),  # it may be more than a tenth of ‖∇F‖
        ((0.3, 0.2, 0.4), 1.0, FOR_NOW),  # noise hides it in one round, but not in many
        ((0.3, 0.2, 0.4), 0.1, TOO_SMALL),
        ((0.7, 0.6, 0.8), 100.0, TOO_SMALL),  # much noise does not make a bias of 70 % small
        ((0.7, 0.1, 1.2), 100.0, UNCLEAR),
        ((0.0, 0.0, 0.0), 0.0, ENOUGH),
    ],
)
def test_whole_intervals_decide(bias, noise, expected):
    found = diagnosis(bias, noise)
    assert found.judge(found.sizes[0]) == expected


@pytest.mark.parametrize(("bias", "expected"), [((0.1, 0.05, 0.2), UNCLEAR), ((0.0, 0.0, 0.0), ENOUGH)])
def test_where_the_gradient_may_be_zero_only_no_bias_at_all_is_small_enough(bias, expected):
    found = diagnosis(bias, 1.0, gradient=(0.0, 0.0, 0.3))
    assert found.judge(found.sizes[0]) == expected


def test_the_verdict_tells_both_numbers():
    found = diagnosis((0.7, 0.6, 0.8), 2.0)
    words = found.verdict(found.sizes[0])
    assert words.startswith("TOO SMALL: the bias is 70 % of ‖∇F‖ (55 % to 89 %) and 0.35 times the noise of a round")
    assert words.endswith(CONSEQUENCE[TOO_SMALL])
    assert words in str(found)


def test_the_m_it_would_take_follows_one_over_m():
    found = diagnosis((0.4, 0.3, 0.5), noise=0.2)
    assert found.needed() == 32  # a tenth of ‖∇F‖ is less than the noise
    assert diagnosis((0.4, 0.3, 0.5), noise=0.05).needed() == 64  # the noise is less
    assert found.needed(target=0.01) == 320
    assert "it takes about m = 320 to bring the bias below 0.01" in found.advice(0.01)


def test_the_advice_agrees_with_the_verdict():
    enough, nearly = diagnosis((0.05, 0.03, 0.07), 0.2), diagnosis((0.09, 0.05, 0.13), 0.2)
    assert enough.needed() == 8
    assert enough.judge(enough.sizes[0]) == ENOUGH
    assert nearly.judge(nearly.sizes[0]) == FOR_NOW
    assert "m = 8 may be large enough: look with more samples to be certain" in nearly.advice()
    lost = diagnosis((0.1, 0.05, 0.15), 0.2, gradient=(0.0, 0.0, 0.1))
    assert lost.needed() == math.inf
    assert "‖∇F‖ is not distinguished from 0, so no m brings the bias below a tenth of it" in lost.advice()


def test_shares_are_written_with_enough_digits():
    assert [percent(share) for share in (0.7, 1.25, 0.012, 1e-17, math.inf)] == [
        "70 %",
        "125 %",
        "1.2 %",
        "0 %",
        "over 1000 %",
    ]


# ------------------------------------------------------------------------------------ where all is known


class Known(NamedTuple):
    """A problem at a point where bias and ‖∇F‖ are known, and what m is there for many or few estimates."""

    problem: Problem
    clients: list
    x: torch.Tensor
    m: int
    averaged: int
    expected: Judgement

    def share(self) -> float:
        """Return ‖bias‖ / ‖∇F‖."""
        weights = [1.0] * len(self.clients)
        gradient = self.problem.exact(self.x, self.clients, weights)[1]
        return float(true_bias(self.problem, self.clients, self.x, self.m).norm() / gradient.norm())


def true_bias(problem, clients, x, m) -> torch.Tensor:
    """Return E∇F̂ − ∇F by the problem's formula."""
    if isinstance(problem, NestedQuadratic):
        return problem.bias(x, m)
    if isinstance(problem, ConditionalSquares):
        return problem.bias(x, clients, m)

    def difference(point):
        exact, estimated = (problem.expected_objective(point, clients, [1.0] * len(clients), k) for k in (math.inf, m))
        return estimated - exact

    return torch.func.grad(difference)(x)


def at(name: str, x, m: int, averaged: int, expected: Judgement, **options) -> Known:
    task = PROBLEMS[name](clients=2, **options)
    start = task.starting_point(stream(0, 0, 0))
    return Known(task.problem, task.clients, start if x is None else x(task), m, averaged, expected)


MANY, FEW = 10**6, 1
CASES = {
    "quadratic, 70 % and hidden by noise": lambda: at("nested_quadratic", _seventy, 1, FEW, TOO_SMALL, noise=2.0),
    "quadratic, 70 % and above the noise": lambda: at("nested_quadratic", _seventy, 1, MANY, TOO_SMALL, noise=2.0),
    "quadratic, 3 % and hidden by noise": lambda: at("nested_quadratic", _seventy, 24, FEW, ENOUGH, noise=2.0),
    "quadratic, 3 % and above the noise": lambda: at("nested_quadratic", _seventy, 24, MANY, FOR_NOW, noise=2.0),
    "instrumental, at the wrong optimum": lambda: at("instrumental", _wrong, 1, FEW, TOO_SMALL, design="linear"),
    "instrumental, with many samples": lambda: at("instrumental", None, 64, 64, ENOUGH, design="linear"),
    "policy evaluation, at the start": lambda: at("policy_evaluation", None, 1, MANY, TOO_SMALL, features=3),
    "policy evaluation, with many samples": lambda: at("policy_evaluation", None, 16, MANY, FOR_NOW, features=3),
    "information": lambda: at("information", None, 1, MANY, TOO_SMALL),
}


def _seventy(task) -> torch.Tensor:
    """Return a point on the line through the optimum and 0 where the bias with m = 1 is 0.7 ‖∇F‖."""
    square, cross, _ = task.problem._moments(task.clients, [1.0, 1.0])
    return cross / (square - task.problem.noise**2 / 0.7)


def _wrong(task) -> torch.Tensor:
    """Return the minimiser with one inner sample, where the bias is as large as ‖∇F‖."""
    return task.problem.minimiser(task.clients, 1)


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_is_right_where_all_is_known(name):
    known = CASES[name]()
    found = diagnose(known.problem, known.x, known.clients, [known.m], samples=4000, averaged=known.averaged)
    (size,) = found.sizes
    share = found.share(size)
    assert found.judge(size) == known.expected, found.verdict(size)
    assert share.low <= 1.1 * known.share()
    assert share.high >= 0.9 * known.share()


def test_the_cases_are_what_their_names_say():
    assert CASES["quadratic, 70 % and hidden by noise"]().share() == pytest.approx(0.7)
    assert CASES["quadratic, 3 % and hidden by noise"]().share() == pytest.approx(0.7 / 24)
    assert CASES["instrumental, at the wrong optimum"]().share() == pytest.approx(1)
    assert isinstance(CASES["information"]().problem, Information)
