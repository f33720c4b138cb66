"""The bias of an estimator as a term of the theorems, ‖E∇F̂ − ∇F‖ ≤ C/mʳ, and the price of a smaller bias.

    estimator                  r      known from
    plain, any f               1/2    Lemma A.2, C = L_g S_f σ_g: the paper's theorems
    plain, smooth f            1      docs/theory.md
    extrapolated               2      docs/theory.md
    three_level                3      docs/theory.md
    independent_jacobian       2      docs/theory.md

The proofs use three facts about ∇F̂: its bias, which enters once; E‖∇F̂‖² ≤ L_f² L_g²; and that ∇F̂ is S_F-smooth. An
estimator Σ_l c_l ∇F̂(blocks of m/2ˡ samples) is at most Λ = Σ_l |c_l| times as steep, and

    (E‖·‖²)^½ ≤ ρ L_f L_g,      ρ = min(Λ, 1 + 3^¼ S_f σ_g Σ_l |c_l| √(2ˡ − 1) / (L_f √m))

because its levels differ little if m is large. So the theorems hold for it with ρ L_f and Λ S_F in place of L_f and
S_F, and with its own bias term (docs/theory.md). C is known for some problems only (`Constants.smooth_bias`). MLMC has
no term here, because its samples and its noise are not those of m fixed samples.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fedcso.core.constants import Constants
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.estimators import ESTIMATORS
from fedcso.theory.theorem import Theorem


class Levels(NamedTuple):
    """The levels of an estimator: estimates from all m samples, from halves, quarters, …, and their coefficients."""

    coefficients: Sequence[float]
    multiple: int
    """m is a multiple of this."""
    share: float = 1.0
    """The share of the samples that these estimates see."""

    @property
    def steepness(self) -> float:
        """Λ."""
        return sum(abs(c) for c in self.coefficients)

    def noise(self, constants: Constants, m: float) -> float:
        """Return ρ, a bound of the size of the estimator relative to the plain one's."""
        apart = sum(abs(c) * math.sqrt((2**level - 1) / self.share) for level, c in enumerate(self.coefficients))
        spread = FOURTH * constants.outer_smoothness * constants.inner_noise / math.sqrt(m)
        return min(self.steepness, 1 + apart * spread / constants.outer_slope)


FOURTH = 3**0.25
"""(E‖z‖⁴)^¼ ≤ 3^¼ (E‖z‖²)^½ for Gaussian z, as the mean of many inner samples nearly is; 1 would do if ‖∇g‖ ≤ L_g."""


LEVELS = {
    "plain": Levels((1.0,), 1),
    "extrapolated": Levels((2.0, -1.0), 2),
    "three_level": Levels((8 / 3, -2.0, 1 / 3), 4),
    "independent_jacobian": Levels((2.0, -1.0), 4, share=0.5),  # of ∇f
}
"""Estimators to which the theorems extend."""


@dataclass(frozen=True)
class BiasTerm:
    """‖E∇F̂ − ∇F‖ ≤ C/mʳ for an estimator with these levels."""

    estimator: str
    order: float
    """r."""
    constant: float
    """C."""
    levels: Levels = LEVELS["plain"]

    def squared(self, m: int) -> float:
        """Return the bound of the squared bias with m inner samples."""
        return float(self.constant**2 / m ** (2 * self.order))

    def inner_batch(self, factor: float, most: float) -> float:
        """Return the smallest m that the estimator can use with factor · bias² ≤ most; infinity if there is none."""
        if self.constant == 0:
            return self.levels.multiple
        squared = factor * self.constant**2 / most if most else math.inf
        least = float(squared ** (1 / (2 * self.order)))
        return self.levels.multiple * max(1, math.ceil(least / self.levels.multiple)) if least < math.inf else least

    def amplify(self, constants: Constants, m: float) -> Constants:
        """Return the constants with ρ L_f in place of L_f and Λ S_F in place of S_F."""
        steeper, larger = self.levels.steepness, self.levels.noise(constants, m)
        return replace(
            constants,
            outer_slope=larger * constants.outer_slope,
            outer_smoothness=steeper * constants.outer_smoothness,
            inner_smoothness=steeper / larger * constants.inner_smoothness,
        )


def any_f(constants: Constants) -> BiasTerm:
    """Return the term of the paper's theorems: the plain estimator, for any f with a Lipschitz gradient."""
    return BiasTerm("plain", 0.5, constants.inner_slope * constants.outer_smoothness * constants.inner_noise)


def smooth_f(estimator: str, constants: Constants, constant: float | None = None) -> BiasTerm:
    """Return the term of an estimator for a smooth f; `constant` is C, by default that of the problem."""
    order = _falling_order(estimator)
    if estimator not in LEVELS:
        raise InvalidValue("estimator", estimator, f"one of {', '.join(LEVELS)}: only orders are known for others")
    if constant is None:
        constant = constants.smooth_bias.get(estimator)
    if constant is None:
        raise FedcsoError(
            f"C of the estimator {estimator} is not known for this problem: give a bound of mʳ times its bias "
            f"(r = {order}), which fedcso diagnose measures"
        )
    return BiasTerm(estimator, order, constant, LEVELS[estimator])


def known_term(estimator: str, constants: Constants) -> BiasTerm | None:
    """Return the term of an estimator for a smooth f; None if only its order is known."""
    _falling_order(estimator)
    known = estimator in LEVELS and estimator in constants.smooth_bias
    return smooth_f(estimator, constants) if known else None


def _falling_order(estimator: str) -> int:
    """Return r; raise `InvalidValue` if more inner samples do not reduce the bias."""
    order = ESTIMATORS[estimator].bias_order
    if order == 0:
        raise InvalidValue("estimator", estimator, "another: no number of inner samples reduces its bias")
    return order


ONLY_NOISE = frozenset({"FCSG", "FCSG-M", "BSGD"})
"""Methods whose proofs need a bounded variance of single estimates, and smoothness only of their mean. Variance
reduction also needs smooth single estimates, which is not shown for a random level (RT-MLMC)."""


def samples_exponent(theorem: Theorem, method: str, estimator: str) -> float | None:
    """Return the exponent of a method's inner samples with an estimator, for a smooth f; None if it is not shown."""
    if estimator in LEVELS:
        return theorem.samples_exponent(ESTIMATORS[estimator].bias_order)
    # With a random level each ξ needs a bounded number of samples on average, whatever the largest level is.
    return theorem.steps_exponent if estimator == "rt_mlmc" and method in ONLY_NOISE else None
