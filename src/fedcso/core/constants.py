"""The constants of the paper's Assumptions 1–3, on which every bound and every prescription depends.

    S_f, S_g    smoothness of f_ξ and g_η           E‖∇f(y) − ∇f(y')‖ ≤ S_f ‖y − y'‖, the same for g
    L_f, L_g    sizes of their gradients            E‖∇f‖² ≤ L_f²,   E‖∇g‖² ≤ L_g²
    σ_g         noise of the inner samples          E_{η|ξ} ‖g_η(x, ξ) − E g_η(x, ξ)‖² ≤ σ_g²
    gap         distance to the optimum             F(x_0) − F*

For F they imply:   S_F = S_g L_f + S_f L_g²,   Var ∇F̂ ≤ L_f² L_g²,   ‖E∇F̂ − ∇F‖² ≤ L_g² S_f² σ_g² / m.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedcso.core.errors import require, require_nonnegative, require_positive


@dataclass(frozen=True)
class Constants:
    """The constants of a problem that the theorems depend on."""

    outer_smoothness: float
    """S_f."""
    outer_slope: float
    """L_f."""
    inner_smoothness: float
    """S_g."""
    inner_slope: float
    """L_g."""
    inner_noise: float
    """σ_g."""
    gap: float
    """F(x_0) − F*."""
    smooth_bias: Mapping[str, float] = field(default_factory=dict)
    """C by the estimator's name, where f is smooth and C is known: ‖E∇F̂ − ∇F‖ ≤ C/mʳ with the estimator's order r."""

    def __post_init__(self) -> None:
        for name in ("outer_slope", "inner_slope", "gap"):
            require_positive(name, getattr(self, name))
        for name in ("outer_smoothness", "inner_smoothness", "inner_noise"):
            require_nonnegative(name, getattr(self, name))
        for estimator, constant in self.smooth_bias.items():
            require_nonnegative(f"smooth_bias of {estimator}", constant)
        require("smoothness", self.smoothness, lambda v: v > 0, "above 0: f or g must be curved (S_f or S_g above 0)")

    @property
    def smoothness(self) -> float:
        """S_F = S_g L_f + S_f L_g²."""
        return self.inner_smoothness * self.outer_slope + self.outer_smoothness * self.inner_slope**2

    @property
    def variance(self) -> float:
        """L_f² L_g², a bound on the variance of ∇F̂, on E‖∇F̂‖², and on the difference between clients."""
        return (self.outer_slope * self.inner_slope) ** 2

    @property
    def bias(self) -> float:
        """L_g² S_f² σ_g²; divided by m, a bound on the squared bias of ∇F̂."""
        return (self.inner_slope * self.outer_smoothness * self.inner_noise) ** 2


SYMBOLS = {
    "outer_smoothness": "S_f",
    "outer_slope": "L_f",
    "inner_smoothness": "S_g",
    "inner_slope": "L_g",
    "inner_noise": "σ_g",
    "gap": "gap",
}
"""The paper's symbols of the constants of its assumptions."""
