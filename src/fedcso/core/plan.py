"""The plan of a run: its length, batch sizes and participation, whatever the algorithm."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from fedcso.core.errors import InvalidValue, is_number, require, require_choice, require_count, require_nonnegative

if TYPE_CHECKING:
    from fedcso.core.problem import Problem
    from fedcso.core.task import Task


@dataclass(frozen=True)
class Plan:
    """The sizes of a run: rounds, steps, batches, participation, weights of clients."""

    rounds: int = 100
    """Communication rounds; T = rounds · local_steps."""
    local_steps: int = 50
    """q, the steps between two communications."""
    outer_batch: int = 1
    """b, outer samples per step."""
    inner_batch: int = 10
    """m, inner samples per outer sample."""
    initial_batch: int | None = None
    """B, outer samples of the first estimate; b if not given."""
    participation: int | float = 1.0
    """Clients that take part in a round, drawn by the seed: a fraction (float) or a number (int)."""
    weights: Literal["uniform", "size"] | None = None
    """Weights of clients in averages: uniform, as in the paper, or by the size of their data; by default size for your
    own tables and uniform otherwise."""
    topology: str | None = None
    """Who averages with whom: server, ring, torus, complete, or a doubly stochastic matrix as '0.5 0.5; 0.5 0.5'; by
    default a server, unless the method works without (SLATE)."""
    evaluate_every: int = 1
    """Rounds between two evaluations; the start and the last round are always evaluated."""
    epsilon: float = 0.0
    """ε: stop when the mean of ‖∇F(x̄)‖² over the evaluations so far is at most ε² (if ∇F is known); 0 for never."""
    diagnose_every: int = 0
    """Rounds between two measurements of bias and noise (which cost samples); 0 for never."""
    clip: float = 0.0
    """Clip every client's gradient to this norm at every step; 0 for no clipping."""
    weight_decay: float = 0.0
    """λ, adds r(x) = λ/2 ‖x‖² of a network's weights (or of all x) to the objective; its gradient λx is not clipped."""
    patience: int = 0
    """Stop a run after this many evaluations in a row without a better value on validation data; 0 for never."""
    on_nonfinite: Literal["stop", "drop"] = "stop"
    """Stop the run if a client's loss, gradient or update is not finite, or drop the client from the round."""

    def __post_init__(self) -> None:
        for name in ("rounds", "local_steps", "outer_batch", "inner_batch", "evaluate_every"):
            require_count(name, getattr(self, name))
        if self.initial_batch is not None:
            require_count("initial_batch", self.initial_batch)
        require(
            "participation",
            self.participation,
            lambda p: is_number(p) and (p >= 1 if isinstance(p, int) else 0 < p <= 1),
            "a fraction in (0, 1] (float) or a number of clients, at least 1 (int)",
        )
        require_nonnegative("epsilon", self.epsilon)
        require_count("diagnose_every", self.diagnose_every, least=0)
        require("clip", self.clip, lambda norm: is_number(norm) and norm >= 0, "a norm, or 0 for no clipping")
        require_nonnegative("weight_decay", self.weight_decay)
        require_count("patience", self.patience, least=0)
        if self.weights is not None:
            require_choice("weights", self.weights, ("uniform", "size"))
        require_choice("on_nonfinite", self.on_nonfinite, ("stop", "drop"))

    @property
    def initial(self) -> int:
        """B."""
        return self.outer_batch if self.initial_batch is None else self.initial_batch

    @property
    def total_steps(self) -> int:
        """T."""
        return self.rounds * self.local_steps

    def steps(self, round: int) -> range:
        """Return the steps t of a round."""
        return range(round * self.local_steps, (round + 1) * self.local_steps)

    def participants(self, seed: int, round: int, clients: int) -> list[int]:
        """Return the clients that take part in a round, in ascending order."""
        if isinstance(self.participation, float):
            number = max(1, round_half_up(self.participation * clients))
        else:
            number = self.participation
        if number >= clients:
            return list(range(clients))
        from fedcso.core.streams import SERVER, draw_distinct, stream  # late: help shows a plan without importing torch

        return sorted(draw_distinct(number, clients, stream(seed, SERVER, round)))

    def for_task(self, task: "Task") -> "Plan":
        """Return the plan of a run on a task: with its weights, and with the samples of all that its clients stand for.

        One client with the pooled data of N clients draws as many samples in each step as these would together.
        """
        weights, clients = self.weights or task.weights, task.stands_for
        if clients == 1:
            return replace(self, weights=weights)
        b, m = self.outer_batch, self.inner_batch
        # Inner samples that all ξ share have to be multiplied too; others follow the number of ξ.
        drawn = task.problem.inner_samples(clients * b, m)
        inner = clients * task.problem.inner_samples(b, m) // drawn if drawn else 1
        return replace(
            self,
            weights=weights,
            outer_batch=clients * b,
            initial_batch=self.initial_batch and clients * self.initial_batch,
            inner_batch=inner * m,
        )

    @property
    def weighs_by_size(self) -> bool:
        """Whether clients with more data count more; otherwise nobody need look at their data to know the weights."""
        return self.weights == "size"

    def weight(self, problem: "Problem", data: Any) -> float:
        """Return the weight of a client with these data, not normalised; data without a size have weight 1."""
        size = problem.size(data) if self.weighs_by_size else None
        return 1.0 if size is None else float(size)


def round_half_up(value: float) -> int:
    """Round to the nearest whole number, halves upwards (Python's `round` rounds them to even numbers)."""
    return int(value + 0.5)


def require_single_machine(method: str, plan: Plan, clients: int) -> None:
    """Raise `InvalidValue` unless there is a single client (with all the data) and q = 1."""
    if clients != 1:
        raise InvalidValue("clients", clients, f"1 for {method}, which runs on one machine: pool the data first")
    if plan.local_steps != 1:
        raise InvalidValue("local_steps", plan.local_steps, f"1 for {method}, which has no local steps")
