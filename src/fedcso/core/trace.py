"""What a run returns: metrics per evaluation, counted costs, and the iterates to report."""

from dataclasses import dataclass, field

from fedcso.core.costs import Costs
from fedcso.core.errors import Fault, FedcsoError
from fedcso.core.tree import Tree


@dataclass
class Trace:
    """The record of one run."""

    rows: list[dict[str, float]] = field(default_factory=list)
    """One per evaluation: round, step, metrics, counted costs, seconds."""
    last: Tree = None
    """x̄ after the last round."""
    best: Tree = None
    """x̄ at the evaluation that validation data (or the training objective) choose: `fedcso.engines.choice`."""
    output: Tree = None
    """x̄_t at a uniformly random step t, which the theorems speak of; None until that step has been taken."""
    output_row: dict[str, float] = field(default_factory=dict)
    """The metrics of `output`, the round in which it was met and the steps taken until then."""
    shared: Tree = None
    """What the server shares at the end (x, u, …)."""
    costs: Costs = field(default_factory=Costs)
    participation: list[int] = field(default_factory=list)
    """How many rounds each client took part in."""
    dropped: list[Fault] = field(default_factory=list)
    """Updates left out, and why: not finite, or (from real sites) not there, not in shape, far too large."""
    failure: FedcsoError | None = None
    """Why the run broke off, if it did (only in grids; a single run raises it)."""

    def column(self, name: str) -> list[float]:
        """One quantity over all evaluations."""
        return [row[name] for row in self.rows]
