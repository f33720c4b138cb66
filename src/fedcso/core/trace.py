"""The result of a run: metrics of every evaluation, counted costs, and iterates."""

from collections import Counter
from dataclasses import dataclass, field, replace

from fedcso.core.costs import Costs
from fedcso.core.errors import Fault, FedcsoError
from fedcso.core.tree import Tree


@dataclass
class Trace:
    """The result of one run."""

    rows: list[dict[str, float]] = field(default_factory=list)
    """One row per evaluation: round, step, metrics, counted costs, seconds."""
    last: Tree = None
    """x̄ after the last round."""
    best: Tree = None
    """x̄ at the evaluation chosen by validation data or the training objective (`fedcso.engines.choice`)."""
    output: Tree = None
    """x̄_t at a uniformly random step t, the output in the theorems; None before that step."""
    output_row: dict[str, float] = field(default_factory=dict)
    """The metrics of `output`, its round, and the number of steps taken until then."""
    shared: Tree = None
    """All that the server shares at the end (x, u, …)."""
    costs: Costs = field(default_factory=Costs)
    participation: Counter[int] = field(default_factory=Counter)
    """The number of rounds in which a client took part, for those that did."""
    dropped: list[Fault] = field(default_factory=list)
    """Clients left out of a round, and why: not finite or, from real sites, missing, malformed or far too large."""
    measured: dict[str, float] = field(default_factory=dict)
    """What an experiment measured on the finished run, besides its rows."""
    failure: FedcsoError | None = None
    """Why the run stopped early, if it did (in grids only; a single run raises the error)."""

    def copied(self) -> "Trace":
        """Return a copy that does not change when the run goes on."""
        return replace(self, participation=Counter(self.participation))

    def column(self, name: str) -> list[float]:
        """Return one quantity over all evaluations."""
        return [row[name] for row in self.rows]
