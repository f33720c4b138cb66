"""Theorems 4.1, 4.4 and 4.7 with their corollaries, and bounds for the single-machine methods.

All bound (1/T) Σ_t E‖∇F(x̄_t)‖². If a statement in the paper differs from its proof, the constants here are those of the
proof:

- Theorem 4.1: 78(q−1)q (the statement has 42). Its corollary's constants are 1/3 and 13/6 (not 1/6 and 19/9).
- Theorem 4.4: β = 5 S_F α (not η), 12 L_f² L_g² (not 3), and q(q−1), which the last line of the proof rounds up to q².
- Theorem 4.7: β = cα² with c = 30 S_F²/(bN), and α ≤ 1/(12 q S_F) (the statement has β = 5 S_F α and 1/(6 q S_F)).
  The last term lacks an L_g², because the variance of ∇F̂ is bounded by L_f² L_g². Here it is
  6β L_f² max(1, L_g²)/(Nb), which holds in both readings.

BSGD is Theorem 4.1 with N = q = 1. BSpiderBoost is not in the paper. Its bound is derived as follows: let
e_t = u_t − ∇F̂(x_t) and b = period. On average E‖e‖² ≤ L_f²L_g²/B' + S_F²α² E‖u‖², and

    F(x_{t+1}) ≤ F(x_t) − (α/2) ‖∇F‖² − (α/2)(1 − αS_F) ‖u‖² + α (bias² + ‖e_t‖²),

so for α ≤ 1/(2 S_F) the terms with ‖u‖² cancel.
"""

import math
from dataclasses import replace

from fedcso.algorithms import BSGD, FCSG, FCSGM, AccFCSGM, BSpiderBoost
from fedcso.core.constants import Constants
from fedcso.core.errors import require
from fedcso.theory.theorem import Setting, Terms, Theorem


def round_up(value: float) -> int:
    """Round up to a whole number, at least 1."""
    return max(1, math.ceil(value))


def _round_down(value: float) -> int:
    """Round down to a whole number, at least 1; a value that is whole up to rounding errors counts as whole."""
    return max(1, math.floor(value * (1 + 1e-12)))


def _round_up_to_multiple(steps: int, q: int) -> int:
    return q * math.ceil(steps / q)


# ----------------------------------------------------------------------------- Theorem 4.1: FCSG


def _fcsg_terms(c: Constants, s: Setting) -> Terms:
    alpha, q = s.learning_rate, s.local_steps
    return {
        "start": 2 * c.gap / (alpha * s.steps),
        "noise": 2 * alpha * c.smoothness * c.variance / s.clients,
        "drift": 78 * (q - 1) * q * (alpha * c.smoothness) ** 2 * c.variance,
    }


def _fcsg_choice(c: Constants, clients: int, b: int, steps: int) -> Setting:
    q = _round_down((steps / clients**3) ** 0.25)
    alpha = math.sqrt(clients / steps) / (6 * c.smoothness)
    steps = _round_up_to_multiple(steps, q)
    return Setting("FCSG", clients, steps, alpha, local_steps=q, outer_batch=b, initial_batch=b)


def _bsgd_choice(c: Constants, clients: int, b: int, steps: int) -> Setting:
    return replace(_fcsg_choice(c, clients, b, steps), method="BSGD", local_steps=1, steps=steps)


# --------------------------------------------------------------------------- Theorem 4.4: FCSG-M


def _fcsg_m_terms(c: Constants, s: Setting) -> Terms:
    alpha, beta, q = s.learning_rate, s.momentum, s.local_steps
    _require_momentum(s, 5 * c.smoothness * alpha)
    return {
        "start": 2 * c.gap / (alpha * s.steps),
        "noise": 8 * beta * c.variance / s.clients,
        "first": 8 * c.variance / (beta * s.initial_batch * s.steps),
        "drift": 96 / 5 * q * (q - 1) * (alpha * c.smoothness) ** 2 * c.variance * (13 + 1 / s.clients),
    }


def _fcsg_m_choice(c: Constants, clients: int, b: int, steps: int) -> Setting:
    setting = _fcsg_choice(c, clients, b, steps)
    return replace(setting, method="FCSG-M", momentum=5 * c.smoothness * setting.learning_rate)


# ----------------------------------------------------------------------- Theorem 4.7: Acc-FCSG-M


def _acc_terms(c: Constants, s: Setting) -> Terms:
    alpha, beta = s.learning_rate, s.momentum
    factor = 30 * c.smoothness**2 / (s.outer_batch * s.clients)
    _require_momentum(s, factor * alpha**2)
    larger = c.outer_slope**2 * max(1.0, c.inner_slope**2)
    return {
        "start": 2 * c.gap / (alpha * s.steps),
        "noise": 6 * beta * larger / (s.clients * s.outer_batch),
        "first": 3 * c.variance / (beta * s.initial_batch * s.clients * s.steps),
        "drift": 13 * c.variance * (factor * alpha / c.smoothness) ** 2 / 6,
    }


def _acc_choice(c: Constants, clients: int, b: int, steps: int) -> Setting:
    q = _round_down((steps / clients**2) ** (1 / 3))
    alpha = 1 / (12 * q * c.smoothness)
    beta = 30 * (c.smoothness * alpha) ** 2 / (b * clients)
    return Setting("Acc-FCSG-M", clients, _round_up_to_multiple(steps, q), alpha, beta, q, b, initial_batch=max(q, b))


def _require_momentum(s: Setting, expected: float) -> None:
    close = math.isclose(s.momentum, expected, rel_tol=1e-9)
    allowed = f"the value that the proof uses, here {expected:.4g}, and in (0, 1]"
    require("momentum", s.momentum, lambda beta: close and 0 < beta <= 1, allowed)


# ----------------------------------------------------------------------------------- BSpiderBoost


def _spider_terms(c: Constants, s: Setting) -> Terms:
    return {"start": 2 * c.gap / (s.learning_rate * s.steps), "noise": 2 * c.variance / s.initial_batch}


def _spider_choice(c: Constants, clients: int, b: int, steps: int) -> Setting:
    """Choose B' such that noise equals start, and the period √B' such that large and small batches cost the same."""
    alpha = 1 / (2 * c.smoothness)
    large = round_up(c.variance * alpha * steps / c.gap)
    period = math.ceil(math.sqrt(large))
    return Setting("BSpiderBoost", clients, steps, alpha, outer_batch=period, initial_batch=large, period=period)


THEOREMS: dict[str, Theorem] = {
    "FCSG": Theorem(
        "Theorem 4.1",
        (6, 3),
        lambda c, q: 1 / (6 * q * c.smoothness),
        _fcsg_terms,
        2,
        _fcsg_choice,
        lambda s: FCSG(s.learning_rate),
    ),
    "FCSG-M": Theorem(
        "Theorem 4.4",
        (6, 3),
        lambda c, q: 1 / (6 * q * c.smoothness),
        _fcsg_m_terms,
        4,
        _fcsg_m_choice,
        lambda s: FCSGM(s.learning_rate, s.momentum),
    ),
    "Acc-FCSG-M": Theorem(
        "Theorem 4.7",
        (5, 2),
        lambda c, q: 1 / (12 * q * c.smoothness),
        _acc_terms,
        3,
        _acc_choice,
        lambda s: AccFCSGM(s.learning_rate, s.momentum),
    ),
    "BSGD": Theorem(
        "Theorem 4.1 with N = q = 1",
        (6, 4),
        lambda c, q: 1 / (6 * c.smoothness),
        _fcsg_terms,
        2,
        _bsgd_choice,
        lambda s: BSGD(s.learning_rate),
    ),
    "BSpiderBoost": Theorem(
        "the bound of fedcso.theory",
        (5, 2),
        lambda c, q: 1 / (2 * c.smoothness),
        _spider_terms,
        2,
        _spider_choice,
        lambda s: BSpiderBoost(s.learning_rate, period=s.outer_batch, large_batch=s.initial_batch),
    ),
}
"""Theorems by method. For single-machine methods, which send nothing, the second exponent is that of the steps."""

SINGLE_MACHINE = frozenset({"BSGD", "BSpiderBoost"})
