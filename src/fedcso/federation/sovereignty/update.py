"""How a site protects its own update, and what its updates have revealed so far: the site's own account.

With Δ = (what the site sends) − (what it was sent), over all that a method shares together:

    clipping       Δ ← Δ min(1, C / ‖Δ‖)
    local          Δ + N(0, (zC)² I):       holds for each update alone, whoever sees it
    distributed    Δ + N(0, (zC)²/n I):     the sum over n sites that all do so has the noise N(0, (zC)² I)

Any change of the site's rows moves a clipped update by at most 2C, so an update is a Gaussian mechanism with
μ = 2/z. Gaussian mechanisms compose exactly: μ² adds up over updates, and with Φ the normal distribution function

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)

Reference: Balle, Wang, Improving the Gaussian Mechanism for Differential Privacy, ICML 2018, Theorem 8; Dong, Roth,
Su, Gaussian Differential Privacy, JRSS-B 2022, Corollary 3.3.
"""

import math
from dataclasses import dataclass
from typing import Any

from fedcso.core.errors import InvalidValue, is_number

LOCAL, DISTRIBUTED = "local", "distributed"


@dataclass(frozen=True)
class Update:
    """What a site does to an update before it leaves, and how much its updates may reveal in all."""

    clip: float = 0.0
    """C, the largest norm of an update; 0 for no clipping."""
    noise: float = 0.0
    """z, the standard deviation of the noise in units of clip; 0 for none."""
    gaussian: str = LOCAL
    """local: the noise of this site suffices by itself; distributed: that of several sites together does."""
    sites: int = 1
    """n, the number of sites that add distributed noise."""
    delta: float = 1e-5
    max_epsilon: float = 0.0
    """The largest ε of all updates together, in all runs; 0 for no limit."""

    def __post_init__(self) -> None:
        for name in ("clip", "noise", "max_epsilon"):
            self._require(name, lambda v: is_number(v) and 0 <= v < math.inf, "a finite number, at least 0")
        self._require("gaussian", lambda v: v in (LOCAL, DISTRIBUTED), f"{LOCAL!r} or {DISTRIBUTED!r}")
        self._require("sites", lambda n: type(n) is int and n >= 1, "a whole number, at least 1")
        self._require("delta", lambda v: is_number(v) and 0 < v < 1, "in (0, 1)")
        self._require("noise", lambda z: not z or self.clip, "0 without clip, which bounds an update")
        self._require("max_epsilon", lambda e: not e or self.noise, "0 without noise: nothing would be allowed")
        self._require("sites", lambda n: n == 1 or self.gaussian == DISTRIBUTED, f"1 with gaussian = {LOCAL!r}")

    def _require(self, name: str, holds: Any, allowed: str) -> None:
        value = getattr(self, name)
        if not holds(value):
            raise InvalidValue(f"update.{name}", value, allowed)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise that this site adds to each number."""
        return self.noise * self.clip / math.sqrt(self.sites)

    def cost(self, updates: int = 1) -> float:
        """Return μ² of some updates; 0 without noise, where nothing is promised."""
        return updates * (2 / self.noise) ** 2 if self.noise else 0.0


def epsilon(cost: float, delta: float) -> float:
    """Return the smallest ε for which updates with a total of μ² = cost are (ε, δ)-differentially private."""
    if not cost > 0:
        return 0.0
    if not math.isfinite(cost):
        return math.inf
    mu, low, high = math.sqrt(cost), 0.0, 1.0
    while _delta(mu, high) > delta:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if _delta(mu, middle) <= delta else (middle, high)
    return high


def _delta(mu: float, epsilon: float) -> float:
    """Return δ(ε); the second term by its logarithm, because e^ε may be too large for a float."""
    behind = _log_normal(-mu / 2 - epsilon / mu)
    return _normal(mu / 2 - epsilon / mu) - math.exp(min(0.0, epsilon + behind))


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _log_normal(x: float) -> float:
    """Return log Φ(x); far to the left a lower bound by Mills' ratio, with which δ is never too small."""
    if x > -30:
        return math.log(_normal(x))
    return -x * x / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log1p(-1 / (x * x))
