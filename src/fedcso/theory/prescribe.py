"""The paper's theorems as functions: settings for an accuracy, and the bound for given settings.

    prescribe("FCSG", constants, clients=16, epsilon=0.1)    α, β, q, B, m, T for ‖∇F‖ ≤ ε on average
    bound(setting, constants)                                the theorem's right-hand side, term by term

Both are about the plain estimator and any f, as in the paper. With `bias=smooth_f("extrapolated", constants)` they are
about another estimator, for a smooth f (`fedcso.theory.bias_terms`).

q is rounded down (but not below 1), T up to a multiple of q, B and m up. The bound is evaluated with the rounded
numbers, and T is increased by 1 % at a time until the bound is at most ε². Half of ε² is reserved for the bias, which
determines m. `fedcso.theory.bounds` has the theorems and says where the paper's statements differ from its proofs.
"""

import math
from dataclasses import replace

from fedcso.core.algorithm import Algorithm
from fedcso.core.constants import Constants
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName, require, require_count, require_positive
from fedcso.theory.bias_terms import BiasTerm, any_f
from fedcso.theory.bounds import SINGLE_MACHINE, THEOREMS
from fedcso.theory.theorem import Setting, Terms, Theorem

__all__ = [
    "SINGLE_MACHINE",
    "THEOREMS",
    "Setting",
    "Terms",
    "Theorem",
    "bound",
    "build_algorithm",
    "find_theorem",
    "prescribe",
]

MOST = 10**18
"""The largest number of steps, and of samples in a step, that is prescribed."""


def bound(setting: Setting, constants: Constants, bias: BiasTerm | None = None) -> Terms:
    """Return the right-hand side of the method's theorem, term by term; the sum bounds the mean of ‖∇F(x̄_t)‖².

    `bias` is the term of the estimator, by default Lemma A.2 about the plain one. Raise `InvalidValue` for settings to
    which the theorem does not apply.
    """
    theorem = find_theorem(setting.method)
    for name in ("clients", "steps", "local_steps", "outer_batch", "inner_batch", "initial_batch"):
        require_count(name, getattr(setting, name))
    bias = bias or any_f(constants)
    constants = bias.amplify(constants, setting.inner_batch)
    largest = theorem.largest_rate(constants, setting.local_steps)
    # Tolerates a rounding error above the limit.
    require(
        "learning_rate",
        setting.learning_rate,
        lambda rate: 0 < rate <= largest * (1 + 1e-12),
        f"above 0 and at most {largest:.4g}, the limit of {theorem.source} "
        f"for q = {setting.local_steps} and S_F = {constants.smoothness:.4g}",
    )
    return theorem.terms(constants, setting) | {"bias": theorem.bias_factor * bias.squared(setting.inner_batch)}


def prescribe(
    method: str,
    constants: Constants,
    clients: int,
    *,
    epsilon: float | None = None,
    steps: int | None = None,
    outer_batch: int = 1,
    bias: BiasTerm | None = None,
) -> Setting:
    """Return the corollary's settings for an accuracy ε, or for a number of steps T.

    With T, m is chosen such that the bias equals the sum of the other terms. `bias` is the term of the estimator, by
    default Lemma A.2 about the plain one.
    """
    theorem = find_theorem(method)
    require_count("clients", clients)
    require_count("outer_batch", outer_batch)
    if epsilon is None and steps is None:
        raise FedcsoError("epsilon is missing: give the accuracy to reach, or the number of steps instead")
    if epsilon is not None and steps is not None:
        raise InvalidValue("epsilon", epsilon, "left out if steps is given: one of the two, not both")
    if method in SINGLE_MACHINE and clients != 1:
        raise InvalidValue("clients", clients, f"1 for {method}, which runs on a single machine")
    bias = bias or any_f(constants)
    if steps is not None:
        require_count("steps", steps, least=clients)
        amplified = bias.amplify(constants, math.inf)  # without the noise that depends on m, which is not known yet
        setting = theorem.choose(amplified, clients, outer_batch, steps)
        rest = sum(theorem.terms(amplified, setting).values())
        return replace(setting, inner_batch=int(bias.inner_batch(theorem.bias_factor, rest)))
    assert epsilon is not None
    require_positive("epsilon", epsilon)
    m = bias.inner_batch(2 * theorem.bias_factor, epsilon**2)
    amplified = bias.amplify(constants, m)
    tried = clients
    while m <= MOST and tried <= MOST:
        setting = replace(theorem.choose(amplified, clients, outer_batch, tried), inner_batch=int(m))
        if sum(bound(setting, constants, bias).values()) <= epsilon**2:
            return setting
        # T can't be computed directly: the bound jumps where q changes from one whole number to the next.
        tried = max(tried + 1, int(1.01 * tried))
    raise InvalidValue("epsilon", epsilon, "larger: it would need over 10^18 steps, or samples in a step")


def find_theorem(method: str) -> Theorem:
    """Return the theorem about a method; raise `UnknownName` if there is none."""
    if method not in THEOREMS:
        raise UnknownName("method with a theorem", method, THEOREMS)
    return THEOREMS[method]


def build_algorithm(setting: Setting) -> Algorithm:
    """Return the method with these hyper-parameters, ready to run."""
    return find_theorem(setting.method).algorithm(setting)
