"""What a coordinator decides about real sites, whatever the method: who, how many, how long to wait, how to combine."""

from dataclasses import dataclass, field, fields
from typing import Any

from fedcso.core.errors import InvalidValue, is_number, require, require_choice, require_count, require_positive
from fedcso.core.plan import Plan
from fedcso.federation.aggregation import AGGREGATES, Aggregation


@dataclass(frozen=True)
class Federation:
    """The options of a run over real sites."""

    sites: str = "3"
    """The sites' names, separated by commas, or their number for the names 0, 1, 2, …"""
    min_sites: int = 2
    """A round counts with answers from so many sites; with fewer it waits."""
    round_seconds: float = 600.0
    """How long a site may take to answer; then the round goes on without it."""
    wait_seconds: float = 600.0
    """How long to wait for sites, all of them at the start and min_sites later, before giving up for now."""
    aggregate: str = "mean"
    """How what sites send is combined: mean, or against a few bad sites median or trimmed_mean."""
    trim: float = 0.2
    """Of trimmed_mean: the share of values left out at either end of each coordinate."""
    outlier: float = 1000.0
    """A site whose update is so many times longer than the median site's is left out; 0 for never."""
    clip_update: float = 0.0
    """Updates longer than this are shortened to it; 0 for never."""
    dp_noise: float = 0.0
    """Client-level differential privacy: the noise's standard deviation, in units of clip_update; 0 for none."""
    dp_delta: float = 1e-5
    """The δ for which the ε of dp_noise is reported."""
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
            raise InvalidValue("dp_noise", self.dp_noise, "0 without clip_update, which bounds what one site can do")
        if self.dp_noise and self.aggregate != "mean":
            raise InvalidValue("dp_noise", self.dp_noise, "0 unless aggregate is mean, for which the noise is reckoned")

    @classmethod
    def from_flat(cls, values: dict[str, Any]) -> "Federation":
        """Read the options that stand in a flat configuration."""
        return cls(**{name: values[name] for name in OPTIONS if name in values})

    def flat(self) -> dict[str, Any]:
        """Return them by name."""
        return {name: getattr(self, name) for name in OPTIONS}

    def check(self, plan: Plan) -> None:
        """Refuse what sites can't do, and a plan for which the noise would not give the privacy that is reported."""
        require("diagnose_every", plan.diagnose_every, lambda k: k == 0, "0 over real sites: it looks at their samples")
        if self.dp_noise and plan.weights != "uniform":
            raise InvalidValue("weights", plan.weights, "uniform with dp_noise, where all sites count alike")

    @property
    def too_long(self) -> float:
        """`outlier`; with noise never, for whom it leaves out depends on what the others sent, and clipping does."""
        return 0.0 if self.dp_noise else self.outlier

    @property
    def aggregation(self) -> Aggregation:
        """How what sites send is combined."""
        return Aggregation(self.aggregate, self.trim, self.clip_update, self.dp_noise)


OPTIONS = [option.name for option in fields(Federation) if option.init]


def _names(sites: str) -> list[str]:
    """`3` for 0, 1, 2; otherwise the names themselves."""
    text = str(sites).strip()
    names = [str(n) for n in range(int(text))] if text.isdecimal() else [name.strip() for name in text.split(",")]
    allowed = all(name and all(c.isalnum() or c in "-_." for c in name) for name in names)
    if not names or not allowed or len(set(names)) < len(names):
        raise InvalidValue("sites", sites, "a number, or different names of letters, digits and - _ . with commas")
    return names
