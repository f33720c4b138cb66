"""Fixed points of FCSG and Local-SCGD on the nested quadratic, in closed form.

FCSG takes ∇f_i at the inner value ĝ_i of the sample itself. Local-SCGD takes it at a tracked y, in which ĝ_i has only a
weight w, and the rest is the mean over other samples. With slopes η̄_i (the mean of m inner samples), ĝ_i = η̄_i x:

    E[y | η̄_i] = ( w η̄_i + (1 − w) E[μ] ) x          w = 1 (FCSG), γ/b (y per step), γ (y per sample)
    E[z]       = ( E[μ]² + w (Var μ + τ²/m) ) x − E[μξ]

because E[η̄_i²] = E[μ]² + Var μ + τ²/m. So the mean of x in the stationary state is

    x_w = E[μξ] / ( E[μ]² + w (Var μ + τ²/m) ),       where x* = E[μξ] / ( E[μ]² + Var μ )

for every stable step size: all updates are linear in x and y, and each η̄ is independent of the x and y before it.
Var μ, the dependence of η on ξ, asks for w = 1. The noise τ²/m, which causes the bias, asks for w = 0.
"""

from typing import NamedTuple

from fedcso.algorithms import FCSG, LocalSCGD
from fedcso.core.algorithm import Algorithm


class Scene(NamedTuple):
    """A nested quadratic with E[ξ] = Var ξ = 1, so that E[μ] = 1 + κ, Var μ = κ² and E[μξ] = 1 + 2κ."""

    title: str
    coupling: float
    """κ."""
    noise: float
    """τ."""

    def fixed_point(self, weight: float, m: int) -> float:
        """Return x_w for the weight w of a sample's own inner value."""
        spread = self.coupling**2 + self.noise**2 / m
        return (1 + 2 * self.coupling) / ((1 + self.coupling) ** 2 + weight * spread)

    def optimum(self) -> float:
        """Return x*."""
        return (1 + 2 * self.coupling) / ((1 + self.coupling) ** 2 + self.coupling**2)

    def __str__(self) -> str:
        return f"κ={self.coupling:g} τ={self.noise:g}"


CONDITIONAL = Scene("η depends on ξ, little noise", 0.5, 0.2)
BOTH = Scene("η depends on ξ, much noise", 0.5, 1.0)
COMPOSITIONAL = Scene("η independent of ξ", 0.0, 1.0)
SCENES = (CONDITIONAL, BOTH, COMPOSITIONAL)

RULES = {"FCSG": "FCSG", "mean": "Local-SCGD, y per step", "each": "Local-SCGD, y per sample"}
"""The methods; those of Local-SCGD by the name of their blend."""


class Point(NamedTuple):
    """What is measured: a method with its γ (1 for FCSG), and the batch sizes."""

    scene: Scene
    rule: str
    tracking: float
    b: int
    m: int

    @property
    def weight(self) -> float:
        """w, the weight of a sample's own inner value in the point at which its ∇f is taken."""
        return self.tracking / self.b if self.rule == "mean" else self.tracking

    @property
    def formula(self) -> float:
        """The fixed point x_w."""
        return self.scene.fixed_point(self.weight, self.m)

    @property
    def error(self) -> float:
        """The distance of x_w from x*."""
        return abs(self.formula - self.scene.optimum())

    def algorithm(self, rate: float) -> Algorithm:
        """Return the method."""
        return FCSG(rate) if self.rule == "FCSG" else LocalSCGD(rate, self.tracking, self.rule)  # type: ignore[arg-type]
