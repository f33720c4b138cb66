"""The paper's theorems as functions: what to set, how long it takes, and what is then guaranteed.

    prescribe("FCSG", constants, clients=16, epsilon=0.1)    α, β, q, B, m, T for ‖∇F‖ ≤ ε on average
    bound(setting, constants)                                the theorem's right-hand side, term by term

Rounding: q down (but not below 1), T up to a multiple of q, B and m up. The bound is evaluated with the rounded
numbers, and T grows by one in a hundred until it is at most ε²; half of ε² is reserved for the bias, which decides m.
The theorems themselves, and where the paper's statements differ from its proofs: `fedcso.theorems`.
"""

from dataclasses import replace

from fedcso.core.algorithm import Algorithm
from fedcso.core.constants import Constants
from fedcso.core.errors import InvalidValue, UnknownName, require, require_count, require_positive
from fedcso.theory.bounds import SINGLE_MACHINE, THEOREMS, at_least_one
from fedcso.theory.theorem import Setting, Terms, Theorem

__all__ = [
    "SINGLE_MACHINE",
    "THEOREMS",
    "Setting",
    "Terms",
    "Theorem",
    "algorithm_of",
    "bound",
    "prescribe",
    "theorem_of",
]

MOST = 10**18
"""Steps or samples that no one can pay for."""


def bound(setting: Setting, constants: Constants) -> Terms:
    """The right-hand side of the method's theorem, term by term; their sum bounds the mean of ‖∇F(x̄_t)‖².

    Refuses settings of which the theorem says nothing.
    """
    theorem = theorem_of(setting.method)
    for name in ("clients", "steps", "local_steps", "outer_batch", "inner_batch", "initial_batch"):
        require_count(name, getattr(setting, name))
    largest = theorem.largest_rate(constants, setting.local_steps)
    # A rounding error above the limit is no offence.
    require(
        "learning_rate",
        setting.learning_rate,
        lambda rate: 0 < rate <= largest * (1 + 1e-12),
        f"above 0 and at most {largest:.4g}, beyond which {theorem.source} says nothing "
        f"(q = {setting.local_steps}, S_F = {constants.smoothness:.4g})",
    )
    return theorem.terms(constants, setting) | {"bias": theorem.bias_factor * constants.bias / setting.inner_batch}


def prescribe(
    method: str,
    constants: Constants,
    clients: int,
    *,
    epsilon: float | None = None,
    steps: int | None = None,
    outer_batch: int = 1,
) -> Setting:
    """The corollary's settings for an accuracy ε, or for a number of steps T (then m makes bias and rest equal)."""
    theorem = theorem_of(method)
    require_count("clients", clients)
    require_count("outer_batch", outer_batch)
    if (epsilon is None) == (steps is None):
        raise InvalidValue("epsilon", epsilon, "given, unless the number of steps is (one of the two, not both)")
    if method in SINGLE_MACHINE and clients != 1:
        raise InvalidValue("clients", clients, f"1 for {method}, which runs on one machine")
    if steps is not None:
        require_count("steps", steps, least=clients)
        setting = theorem.choose(constants, clients, outer_batch, steps)
        rest = sum(theorem.terms(constants, setting).values())
        return replace(setting, inner_batch=at_least_one(theorem.bias_factor * constants.bias / rest))
    assert epsilon is not None
    return _shortest(theorem, constants, clients, outer_batch, epsilon)


def _shortest(theorem: Theorem, constants: Constants, clients: int, outer_batch: int, epsilon: float) -> Setting:
    """The first T that suffices, going up by one in a hundred: q jumps between whole numbers, and the bound with it."""
    require_positive("epsilon", epsilon)
    needed = 2 * theorem.bias_factor * constants.bias
    steps = clients
    while needed <= MOST * epsilon**2 and steps <= MOST:
        m = at_least_one(needed / epsilon**2)
        setting = replace(theorem.choose(constants, clients, outer_batch, steps), inner_batch=m)
        if sum(bound(setting, constants).values()) <= epsilon**2:
            return setting
        steps = max(steps + 1, int(1.01 * steps))
    raise InvalidValue("epsilon", epsilon, "larger: it would take over 10^18 steps, or samples a step")


def theorem_of(method: str) -> Theorem:
    """What is proven of a method."""
    if method not in THEOREMS:
        raise UnknownName("method with a theorem", method, THEOREMS)
    return THEOREMS[method]


def algorithm_of(setting: Setting) -> Algorithm:
    """The method with these hyper-parameters, ready to run."""
    return theorem_of(setting.method).algorithm(setting)
