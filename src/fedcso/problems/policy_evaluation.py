"""Policy evaluation: the value of states under a fixed policy, by minimising the Bellman residual.

    V(s) = E[ r + δ V(s') | s ],      V(s) = φ(s)ᵀw

    ξ = a state s ~ d_n,   η | ξ = (r, s') of a step from s
    g = φ(s)ᵀw − r − δ φ(s')ᵀw,   f(g) = ½ g²

The residual is a conditional mean that is linear in w, so F and ∇F are known (`fedcso.problems.conditional_squares`,
with features φ(s) − δφ(s') and outcomes r). With transition probabilities P, mean rewards r̄ and D = diag(d):

    F(w)     = ½ (A w − r̄)ᵀ D (A w − r̄),      A = (I − δP) Φ
    E F̂(w)  = F(w) + (1/2m) Σ_s d(s) Var( r + δ φ(s')ᵀw | s )

The last term is the bias of “double sampling”: with few next states per state, values that vary little between next
states look better than they are. With one feature per state, Φw_∞ = V = (I − δP)⁻¹ r̄ and F = 0. A constant is added to
these features: the common level of all values is the direction in which F is flattest, of order (1 − δ)²/S without it.

The Markov chains are those of Archibald, McKinnon and Thomas, On the generation of Markov decision processes, 1995
(“Garnet”): every state has a few possible successors, with Dirichlet(1) probabilities and rewards ~ U(0, 1).
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from fedcso.core.errors import InvalidValue, is_number, require, require_count, require_nonnegative
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.streams import DATA, stream
from fedcso.core.task import Task
from fedcso.problems.conditional_squares import REAL, ConditionalSquares, Moments, Observations, Source, moments_between
from fedcso.problems.grouped_rows import group_rows

VALUE_ERROR = Metric("value_error", "root mean square error of V", higher_is_better=False, log=True)


class PolicyEvaluation(ConditionalSquares):
    """The Bellman residual of values φ(s)ᵀw; a client's data are a `Source` of states and steps."""


@dataclass(frozen=True)
class Chain(Source):
    """A Markov chain with rewards, whose states a client visits with given probabilities."""

    visits: torch.Tensor
    """d, the probabilities of the states."""
    transition: torch.Tensor
    """P."""
    reward: torch.Tensor
    """R(s, s')."""
    features: torch.Tensor
    """Φ, one row for each state."""
    discount: float
    """δ."""
    moments: Moments = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ahead = self.discount * self.transition @ self.features
        mean_reward = (self.transition * self.reward).sum(1)
        between = moments_between(self.visits, self.features - ahead, mean_reward)
        joint = self.visits.unsqueeze(1) * self.transition
        spread = ahead.unsqueeze(1) - self.discount * self.features
        rest = self.reward - mean_reward.unsqueeze(1)
        within = torch.einsum("st,sti,stj->ij", joint, spread, spread)
        cross = torch.einsum("st,sti,st->i", joint, spread, rest)
        moments = Moments(*between, within, cross, (joint * rest.square()).sum())
        object.__setattr__(self, "moments", moments)

    @property
    def values(self) -> int:  # type: ignore[override]
        """The number of states."""
        return len(self.visits)

    def draw_instruments(self, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        """Draw states."""
        return _draw(self.visits.expand(*shape, -1), rng, 1).squeeze(-1)

    def draw(self, rng: torch.Generator, z: torch.Tensor, m: int) -> Observations:
        """Draw m steps from each state."""
        to = _draw(self.transition[z], rng, m)
        at = z.unsqueeze(-1)
        return Observations(self.features[at] - self.discount * self.features[to], self.reward[at, to])

    def true_values(self) -> torch.Tensor:
        """Return V = (I − δP)⁻¹ r̄."""
        system = torch.eye(len(self.visits), dtype=REAL) - self.discount * self.transition
        values: torch.Tensor = torch.linalg.solve(system, (self.transition * self.reward).sum(1))
        return values


def _draw(probabilities: torch.Tensor, rng: torch.Generator, m: int) -> torch.Tensor:
    """Draw m indices by each row of probabilities."""
    borders = probabilities.cumsum(-1)
    at = torch.rand(*borders.shape[:-1], m, generator=rng, dtype=REAL) * borders[..., -1:]
    return torch.searchsorted(borders, at).clamp_max(borders.shape[-1] - 1)


class Values(NamedTuple):
    """What values are compared with: features of states, their values and their weights."""

    features: torch.Tensor
    values: torch.Tensor
    weights: torch.Tensor


def measure_values(w: torch.Tensor, true: Values) -> dict[str, Any]:
    """Return the root of Σ_s d(s) (φ(s)ᵀw − V(s))²."""
    return {VALUE_ERROR.name: (true.weights * (w @ true.features.T - true.values).square()).sum(-1).sqrt()}


@with_methods(learning_rate="cosine(2)", momentum=0.3)
@with_plan(rounds=50, local_steps=20, outer_batch=8, inner_batch=8)
def policy_evaluation(
    clients: int = 16,
    states: int = 20,
    features: int = 0,
    successors: int = 5,
    discount: float = 0.9,
    alpha: float = 0.0,
    data: str = "",
    state: str = "",
    reward: str = "",
    next_state: str = "",
    site: str = "",
    data_seed: int = 0,
) -> Task:
    """Evaluate a policy: the values of states, by the Bellman residual of steps that the clients have observed.

    Args:
        clients: simulated steps, the number of clients
        states: simulated steps, S, the number of states
        features: simulated steps, d, the number of features of a state; 0 for one per state and a constant
        successors: simulated steps, the number of possible next states of a state
        discount: δ, the weight of the next state's value
        alpha: simulated steps, Dirichlet concentration of the states a client visits, small for heterogeneous; 0: equal
        data: your own table of steps instead (.csv, .xlsx, .parquet or .npz), or a folder with one for each site
        state: of your own table, the column with the state before a step
        reward: of your own table, the column with the reward of a step
        next_state: of your own table, the column with the state after a step; states without steps are terminal
        site: of your own table, the column that says where a row belongs; without it every file is a site
        data_seed: seed of the Markov chain
    """
    require("discount", discount, lambda d: is_number(d) and 0 <= d < 1, "a number in [0, 1)")
    if data:
        return _table_task(data, state, reward, next_state, site, discount)
    for name, column in (("state", state), ("reward", reward), ("next_state", next_state), ("site", site)):
        if column:
            raise InvalidValue(name, column, "left out without data, your own table")
    for name, number in (("clients", clients), ("states", states), ("successors", successors)):
        require_count(name, number)
    require_count("features", features, least=0)
    require_nonnegative("alpha", alpha)
    for name, number in (("successors", successors), ("features", features)):
        if number > states:
            raise InvalidValue(name, number, f"at most {states}, the number of states")
    chains = _garnet(clients, states, features, successors, discount, alpha, data_seed)
    visits = torch.stack([chain.visits for chain in chains]).mean(0)
    return _task(chains, Values(chains[0].features, chains[0].true_values(), visits))


def _task(sources: list[Any], true: Values, **more: Any) -> Task:
    """Return the task, with a note on what minimisers with other m give."""
    problem = PolicyEvaluation(true.features.shape[-1])
    errors = [float(measure_values(problem.minimiser(sources, m), true)[VALUE_ERROR.name]) for m in (float("inf"), 1)]
    note = f"error of V: {errors[0]:.4g} at the minimiser of F, {errors[1]:.4g} with one next state per state (m = 1)"
    judge = Judge(measure_values, [VALUE_ERROR], broadcasts=True)
    notes = [*more.pop("notes", []), note]
    return Task(problem, sources, test=true, judge=judge, notes=notes, **more)


def _garnet(
    clients: int, states: int, features: int, successors: int, discount: float, alpha: float, seed: int
) -> list[Chain]:
    """Return the clients' chains: the same transitions and rewards, and different visits if alpha is above 0."""
    rng = np.random.default_rng((seed, 2))
    transition = np.zeros((states, states))
    for row in transition:
        row[rng.choice(states, successors, replace=False)] = rng.dirichlet(np.ones(successors))
    reward = torch.from_numpy(rng.random((states, states)))
    phi = _one_per_state(states)
    if features:
        drawn = torch.randn(states, features - 1, generator=stream(seed, DATA, 0), dtype=REAL)
        phi = torch.cat([phi[:, :1], drawn], 1)
    # Gamma variables as in `fedcso.datasets.partition`, for tiny alpha.
    visits = np.maximum(rng.gamma(alpha, size=(clients, states)), 1e-300) if alpha else np.ones((1, states))
    made = [
        Chain(torch.from_numpy(own / own.sum()), torch.from_numpy(transition), reward, phi, discount) for own in visits
    ]
    return made * (clients // len(made))


def _one_per_state(states: int) -> torch.Tensor:
    """Return a constant feature and one for each state."""
    return torch.cat([torch.ones(states, 1, dtype=REAL), torch.eye(states, dtype=REAL)], 1)


def _table_task(data: str, state: str, reward: str, next_state: str, site: str, discount: float) -> Task:
    """Return the task of a table of steps, with one feature per state; states without steps are terminal: V = 0."""
    from fedcso.datasets.tables.by_role import read_by_role  # imported late: pandas takes long to load
    from fedcso.datasets.tables.files import listed

    read = read_by_role(data, {"reward": reward}, {"state": state, "next_state": next_state}, site)
    every = np.concatenate([part["state"] for part in read.columns])
    names, visits = np.unique(every.astype(str), return_counts=True)
    number = {name: place for place, name in enumerate(names.tolist())}
    known = _one_per_state(len(names))
    phi = torch.cat([known, torch.zeros_like(known[:1])])  # the last row is that of terminal states
    sources = []
    terminal: set[str] = set()
    for part in read.columns:
        at = torch.tensor([number[name] for name in part["state"]])
        to = torch.tensor([number.get(name, len(names)) for name in part["next_state"]])
        terminal |= set(part["next_state"]) - number.keys()
        sources.append(
            group_rows(part["state"].astype(str), phi[at] - discount * phi[to], torch.from_numpy(part["reward"]))
        )
    notes = list(read.notes)
    if terminal:
        notes.append(f"states from which there is no step are terminal, with value 0: {listed(sorted(terminal))}")
    best = PolicyEvaluation(known.shape[1]).minimiser(sources)
    true = Values(known, known @ best, torch.from_numpy(visits / visits.sum()))
    notes.append(
        f"a model has {len(names) + 1} numbers: a constant, and one for each state in alphabetical order "
        f"({listed(names)}); the value of a state is the sum of its number and the constant"
    )
    return _task(sources, true, names=read.sites, notes=notes, weights="size")
