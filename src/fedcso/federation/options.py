"""Options of a run over real sites: which sites, how long to wait, how to combine updates, privacy."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.errors import InvalidValue, is_number, require, require_choice, require_count, require_positive
from fedcso.core.plan import Plan
from fedcso.core.topology import SERVER
from fedcso.core.user_code import HERE
from fedcso.federation.aggregation import AGGREGATES, Aggregation
from fedcso.federation.secure.fixed_point import DEFAULT_RANGE, Ranges
from fedcso.reports.wishes import Wishes
from fedcso.runs.config import Flat, RunConfig


@dataclass(frozen=True)
class Federation:
    """The options of a run over real sites."""

    sites: str = "3"
    """The sites' names, separated by commas, or their number for the names 0, 1, 2, …"""
    min_sites: int = 2
    """The smallest number of answers for a round; with fewer, the round is repeated."""
    round_seconds: float = 600.0
    """Seconds that a site may take to answer; then the round continues without it."""
    wait_seconds: float = 600.0
    """Seconds to wait for all sites at the start, and for min_sites later, before stopping."""
    aggregate: str = "mean"
    """How updates are combined: mean, or median or trimmed_mean to tolerate a few bad sites."""
    trim: float = 0.2
    """For trimmed_mean: the share of values dropped at either end of each coordinate."""
    outlier: float = 1000.0
    """Drop a site whose update norm is more than this multiple of the median site's; 0 for never."""
    clip_update: float = 0.0
    """Clip the norm of updates to this; 0 for no clipping."""
    dp_noise: float = 0.0
    """Client-level differential privacy: the noise's standard deviation, in units of clip_update; 0 for none."""
    dp_delta: float = 1e-5
    """The δ for which the ε of dp_noise is reported."""
    secure_aggregation: bool = False
    """Sum the sites' updates so that the coordinator sees no single one."""
    secure_threshold: int = 0
    """With secure_aggregation: the fewest sites in a sum; 0 for more than half of a round's participants."""
    secure_range: str = DEFAULT_RANGE
    """With secure_aggregation: the largest absolute value of a number, or of those of some parts (65536, u = 1e9)."""
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _names(self.sites))
        require_count("min_sites", self.min_sites)
        require("min_sites", self.min_sites, lambda n: n <= len(self.names), f"at most the {len(self.names)} sites")
        for name in ("round_seconds", "wait_seconds"):
            require_positive(name, getattr(self, name))
        require_choice("aggregate", self.aggregate, AGGREGATES)
        require("trim", self.trim, lambda share: is_number(share) and 0 <= share < 0.5, "a share in [0, 0.5)")
        require("outlier", self.outlier, lambda n: is_number(n) and (n == 0 or n > 1), "above 1, or 0 for never")
        for name in ("clip_update", "dp_noise"):
            require(name, getattr(self, name), lambda v: is_number(v) and 0 <= v < float("inf"), "at least 0")
        require("dp_delta", self.dp_delta, lambda v: is_number(v) and 0 < v < 1, "in (0, 1)")
        if self.dp_noise and not self.clip_update:
            raise InvalidValue("dp_noise", self.dp_noise, "0 without clip_update, which bounds a site's influence")
        if self.dp_noise and self.aggregate != "mean":
            raise InvalidValue(
                "dp_noise", self.dp_noise, "0 unless aggregate is mean, for which the privacy is computed"
            )
        self._check_secure()

    def _check_secure(self) -> None:
        Ranges.parse(self.secure_range)
        if not self.secure_aggregation:
            return
        unseen = "with secure_aggregation, in which nobody sees single updates"
        require("aggregate", self.aggregate, lambda how: how == "mean", f"mean {unseen}")
        untested = f"0 or left out {unseen}; clip_update bounds them at the sites"
        require("outlier", self.outlier, lambda n: n in (0, Federation.outlier), untested)
        require("sites", self.sites, lambda _: len(self.names) >= 2, "at least two for secure_aggregation")
        least, most = self.secure_threshold, len(self.names)
        fits = type(least) is int and (least == 0 or 2 <= least <= most)
        require("secure_threshold", least, lambda _: fits, f"0, or a number of sites from 2 to {most}")

    @classmethod
    def from_flat(cls, values: dict[str, Any]) -> "Federation":
        """Read the options from a flat configuration."""
        return cls(**{name: values[name] for name in OPTIONS if name in values})

    def flat(self) -> dict[str, Any]:
        """Return the options by name."""
        return {name: getattr(self, name) for name in OPTIONS}

    def check(self, plan: Plan) -> None:
        """Raise if sites can't run the plan, or if the plan invalidates the reported privacy."""
        require("diagnose_every", plan.diagnose_every, lambda k: k == 0, "0 over real sites: it looks at their samples")
        if self.dp_noise and plan.weighs_by_size:
            raise InvalidValue("weights", plan.weights, "uniform with dp_noise, which needs equal weights")
        if self.secure_aggregation:
            count = len(plan.participants(seed=0, round=0, clients=len(self.names)))
            least = self.threshold(count)
            if least > count:
                raise InvalidValue("participation", plan.participation, f"larger: a secure sum needs {least} sites")
            if 2 * least <= count:
                more = f"more than half of the {count} participants, or both secrets of a site could be recovered"
                raise InvalidValue("secure_threshold", self.secure_threshold, more)

    def threshold(self, participants: int) -> int:
        """Return the fewest sites in a secure sum of a round."""
        return self.secure_threshold or max(2, participants // 2 + 1)

    def check_method(self, algorithm: Algorithm, plan: Plan, codec: Codec = full) -> None:
        """Raise if a method needs another way to combine updates than a coordinator with these options has."""
        topology = plan.topology or algorithm.topology
        if topology != SERVER:
            raise InvalidValue(
                "topology", topology, "server over real sites, which are connected to the coordinator only"
            )
        if self.secure_aggregation and not codec.linear:
            allowed = "full, every(k) or inferred with secure_aggregation: only what is sent as it is can be summed"
            raise InvalidValue("send_u", type(codec).__name__, allowed)
        if not algorithm.pooled:
            return
        reason = f"{type(algorithm).__name__} concatenates {' and '.join(sorted(algorithm.pooled))} of all sites"
        if self.aggregate != "mean":
            raise InvalidValue("aggregate", self.aggregate, f"mean: {reason}, and robust rules protect averages only")
        if self.dp_noise:
            raise InvalidValue("dp_noise", self.dp_noise, f"0: {reason}, to which no noise is added")
        if self.secure_aggregation:
            raise InvalidValue("secure_aggregation", True, f"left out: {reason}, and only sums can be secure")

    @property
    def too_long(self) -> float:
        """The outlier factor; 0 with noise, because dropping a site would depend on other sites' data."""
        return 0.0 if self.dp_noise else self.outlier

    @property
    def aggregation(self) -> Aggregation:
        """The combination of updates."""
        return Aggregation(self.aggregate, self.trim, self.clip_update, self.dp_noise)


OPTIONS = [option.name for option in fields(Federation) if option.init]


MOST_SITES = 10_000

COORDINATOR_ONLY = ("out", "init", "fresh_last_layer")
"""Settings that sites do not need: where results go, and what the first model is."""

THRESHOLDS = "thresholds"
"""The setting that holds what thresholds should achieve: `Wishes` by name, because problems have such options, too."""


def read_wishes(values: Flat) -> Wishes:
    """Read from a configuration what thresholds should achieve."""
    written = values.get(THRESHOLDS, {})
    try:
        return Wishes(**written)
    except TypeError as error:
        known = ", ".join(wish.name for wish in fields(Wishes))
        raise InvalidValue(THRESHOLDS, written, f"numbers by name, of {known}") from error


def run_config(values: Flat, root: Path = HERE) -> RunConfig:
    """Read the run's part of a flat configuration; no hyper-parameter takes the value of a federation's option.

    With noise all sites count alike unless told otherwise, which `Federation.check` refuses.
    """
    if values.get("dp_noise") and values.get("weights") is None:
        values = values | {"weights": "uniform"}
    return RunConfig.from_flat({name: value for name, value in values.items() if name not in OPTIONS}, root)


def _names(sites: str) -> list[str]:
    """Parse `3` as the names 0, 1, 2, or a list of names."""
    text = str(sites).strip()
    if text.isdecimal() and (len(text) > 9 or int(text) > MOST_SITES):
        raise InvalidValue("sites", sites, f"at most {MOST_SITES}")
    names = [str(n) for n in range(int(text))] if text.isdecimal() else [name.strip() for name in text.split(",")]
    allowed = all(name and all(c.isalnum() or c in "-_." for c in name) for name in names)
    if not names or not allowed or len(set(names)) < len(names):
        raise InvalidValue("sites", sites, "a number, or different names of letters, digits and - _ . with commas")
    return names
