"""The paper's theorems as functions: settings for an accuracy, and the bound for given settings.

    prescribe("FCSG", constants, clients=16, epsilon=0.1)    α, β, q, B, m, T for ‖∇F‖ ≤ ε on average
    bound(setting, constants)                                the theorem's right-hand side, term by term

q is rounded down (but not below 1), T up to a multiple of q, B and m up. The bound is evaluated with the rounded
numbers, and T is increased by 1 % at a time until the bound is at most ε². Half of ε² is reserved for the bias, which
determines m. `fedcso.theory.bounds` has the theorems and says where the paper's statements differ from its proofs.
"""

from dataclasses import replace

from fedcso.core.algorithm import Algorithm
from fedcso.core.constants import Constants
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName, require, require_count, require_positive
from fedcso.theory.bounds import SINGLE_MACHINE, THEOREMS, round_up
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


def bound(setting: Setting, constants: Constants) -> Terms:
    """Return the right-hand side of the method's theorem, term by term; the sum bounds the mean of ‖∇F(x̄_t)‖².

    Raise `InvalidValue` for settings to which the theorem does not apply.
    """
    theorem = find_theorem(setting.method)
    for name in ("clients", "steps", "local_steps", "outer_batch", "inner_batch", "initial_batch"):
        require_count(name, getattr(setting, name))
    largest = theorem.largest_rate(constants, setting.local_steps)
    # Tolerates a rounding error above the limit.
    require(
        "learning_rate",
        setting.learning_rate,
        lambda rate: 0 < rate <= largest * (1 + 1e-12),
        f"above 0 and at most {largest:.4g}, the limit of {theorem.source} "
        f"for q = {setting.local_steps} and S_F = {constants.smoothness:.4g}",
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
    """Return the corollary's settings for an accuracy ε, or for a number of steps T.

    With T, m is chosen such that the bias equals the sum of the other terms.
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
    if steps is not None:
        require_count("steps", steps, least=clients)
        setting = theorem.choose(constants, clients, outer_batch, steps)
        rest = sum(theorem.terms(constants, setting).values())
        return replace(setting, inner_batch=round_up(theorem.bias_factor * constants.bias / rest))
    assert epsilon is not None
    return _shortest(theorem, constants, clients, outer_batch, epsilon)


def _shortest(theorem: Theorem, constants: Constants, clients: int, outer_batch: int, epsilon: float) -> Setting:
    """Return the settings with the first sufficient T, increasing T by 1 % at a time.

    T can't be computed directly, because the bound jumps where q changes from one whole number to the next.
    """
    require_positive("epsilon", epsilon)
    needed = 2 * theorem.bias_factor * constants.bias
    steps = clients
    while needed <= MOST * epsilon**2 and steps <= MOST:
        m = round_up(needed / epsilon**2)
        setting = replace(theorem.choose(constants, clients, outer_batch, steps), inner_batch=m)
        if sum(bound(setting, constants).values()) <= epsilon**2:
            return setting
        steps = max(steps + 1, int(1.01 * steps))
    raise InvalidValue("epsilon", epsilon, "larger: it would need over 10^18 steps, or samples in a step")


def find_theorem(method: str) -> Theorem:
    """Return the theorem about a method; raise `UnknownName` if there is none."""
    if method not in THEOREMS:
        raise UnknownName("method with a theorem", method, THEOREMS)
    return THEOREMS[method]


def build_algorithm(setting: Setting) -> Algorithm:
    """Return the method with these hyper-parameters, ready to run."""
    return find_theorem(setting.method).algorithm(setting)
