"""FeDXL2: G is ∇F̂ if the pools are this step's scores, a literal transcription, and the gradient over all clients."""

from dataclasses import dataclass, replace

import pytest
import torch

from fedcso.algorithms import FCSG, SOX, FeDXL2
from fedcso.core.algorithm import State
from fedcso.core.codec import concatenate
from fedcso.core.errors import FedcsoError
from fedcso.core.estimator import sample
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, split_steps
from fedcso.core.streams import stream
from fedcso.core.tree import nbytes
from fedcso.datasets import Examples
from fedcso.engines.job import Job
from fedcso.estimators.plain import plain
from fedcso.problems import AUPRC
from fedcso.problems.auprc import Positives
from fedcso.problems.scores import Scores, ranking_judge
from fedcso.problems.strata import Strata
from tests import transcription as literal
from tests.helpers import CASES, CLEARLY, Case, assert_close, gap, run_on
from tests.rare import PAPERS_SURROGATE, as_model, as_vector, auprc_case, f_gradient, h, labelled, linear, sites

ALPHA, GAMMA, BETA = 0.5, 0.4, 0.3
CASE = auprc_case(**PAPERS_SURROGATE)
PLAN = Plan(rounds=3, local_steps=2, outer_batch=3, inner_batch=4, initial_batch=5)
WAYS = {
    "raw": PAPERS_SURROGATE,
    "log precision": {},
    "sigmoid": {"sigmoid": True, "margin": 0.5},
    "literally": {"itself": 0.0, **PAPERS_SURROGATE},
    "strata": {"strata": Strata(0.5)},
}


# ------------------------------------------------------------------------- with fresh pools it is ∇F̂


def direction_with_pools_of(x_of_pools: torch.Tensor, x: torch.Tensor, problem: AUPRC):
    """Return G at x on some batch, with the batch's scores at another x as pools, and ∇F̂(x) on the same batch."""
    data = labelled(12, 4)
    (batch,) = split_steps(sample(problem, data, stream(0, 0, 0), 1, 3, 5), 1)
    oracle = Oracle(problem, plain, outer_count=problem.outer_count(data))
    a, c = problem.score(as_model(x_of_pools), *batch)
    slopes = torch.stack([f_gradient(y, problem.logarithm) for y in problem.compare(a, c)])
    inner = {name: leaf.flatten() for name, leaf in c.items()}
    shared = {"x": as_model(x), "u": as_model(torch.zeros_like(x))}
    pools = {"inner": concatenate([inner], [1.0]), "outer": concatenate([{"score": a, "slope": slopes}], [1.0])}
    method = FeDXL2(ALPHA, tracking=1.0, momentum=1.0)
    state: State = method.step(method.receive(shared | pools, None), oracle, batch, t=1)
    return as_vector(state.shared["u"]), as_vector(oracle.grad(as_model(x), batch))


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_with_pools_of_the_same_scores_g_is_the_exact_gradient_of_the_estimate(options):
    problem = AUPRC(Scores(linear), **options)
    x, other = torch.tensor([[0.6, -0.4, 0.9, 0.2], [0.1, 0.5, -0.3, 0.0]], dtype=torch.float64)
    direction, gradient = direction_with_pools_of(x, x, problem)
    assert_close(direction, gradient)
    assert gradient.norm() > CLEARLY
    assert gap(direction_with_pools_of(other, x, problem)[0], gradient) > CLEARLY


# -------------------------------------------------------------------------------- line by line


def fedxl2(case: Case, plan: Plan, gamma: float = GAMMA):
    """Transcribe FeDXL2 in loops over pairs: the final x and M. Pools are lists of (weight, score, …)."""
    job = Job(FeDXL2(ALPHA, gamma, BETA), case, plan)
    samples, problem = literal.drawn(job), case.problem
    s, itself = problem.margin, problem.itself
    x, momentum = as_vector(job.start()), None
    tracked: list[dict[int, torch.Tensor]] = [{} for _ in case.clients]
    pool_1, pool_2 = [], []
    for r in range(plan.rounds):
        ends, lists_1, lists_2 = [], [], []
        for n in job.participants(r):
            x_n, m_n, (w_n,) = x, momentum, job.weights([n])
            for t in plan.steps(r):
                batch = samples[t][n]
                z_1, z_2 = batch.xi.inputs, batch.eta.inputs.flatten(0, 1)
                a = [h(x_n, z, problem.sigmoid) for z in z_1]
                c = [h(x_n, z, problem.sigmoid) for z in z_2]
                labels = batch.eta.labels.flatten().tolist()
                passive = pool_2 or [(1.0, score, label) for (score, _), label in zip(c, labels, strict=True)]
                count, total = len(passive), sum(weight for weight, _, _ in passive)
                before, new_1, G = dict(tracked[n]), [], torch.zeros_like(x)  # noqa: N806
                for i, (score, slope) in zip(batch.xi.which.tolist(), a, strict=True):
                    g = torch.full((2,), itself * s**2, dtype=x.dtype)
                    d_g = torch.zeros(2, len(x), dtype=x.dtype)
                    for weight, other, label in passive:
                        near = (s - score + other).clamp_min(0)
                        kind = torch.tensor([label, 1.0], dtype=x.dtype) * weight * count / total
                        g = g + kind * near**2
                        d_g = d_g + kind.unsqueeze(1) * (-2 * near * slope)
                    g, d_g = g / (count + itself), d_g / (count + itself)
                    u = (1 - gamma) * before[i] + gamma * g if i in before else g
                    tracked[n][i] = u
                    new_1.append((score, f_gradient(u)))
                    G = G + d_g.T @ f_gradient(u) / len(a)  # noqa: N806
                old = pool_1 or [(1.0, *one) for one in new_1]
                heard = sum(weight for weight, _, _ in old)
                for weight, score, f_slope in old:
                    for (other, slope), label in zip(c, labels, strict=True):
                        near = (s - score + other).clamp_min(0)
                        kind = torch.tensor([label, 1.0], dtype=x.dtype) * (count / len(c)) / (count + itself)
                        G = G + weight / heard * (f_slope * kind).sum() * 2 * near * slope  # noqa: N806
                lists_1 += [(w_n, *one) for one in new_1]
                lists_2 += [(w_n, score, label) for (score, _), label in zip(c, labels, strict=True)]
                m_n = G if t == 0 else (1 - BETA) * m_n + BETA * G
                x_n = x_n - ALPHA * m_n
            ends.append((w_n, x_n, m_n))
        whole = sum(w for w, _, _ in ends)
        x, momentum = (sum(end[0] / whole * end[place] for end in ends) for place in (1, 2))
        pool_1, pool_2 = lists_1, lists_2
    return {"x": as_model(x), "u": as_model(momentum)}


@pytest.mark.parametrize(
    "case", [CASE, auprc_case(shared=False, sigmoid=True, margin=0.5, **PAPERS_SURROGATE)], ids=["shared", "for each"]
)
@pytest.mark.parametrize(
    "plan", [PLAN, replace(PLAN, participation=2), replace(PLAN, weights="size", rounds=2)], ids=["all", "two", "size"]
)
def test_it_is_its_description_line_by_line(case, plan):
    trace = run_on("reference", FeDXL2(ALPHA, GAMMA, BETA), case, plan)
    expected = fedxl2(case, plan)
    assert_close({name: trace.shared[name] for name in ("x", "u")}, expected)


def test_tracking_and_weights_make_a_difference():
    last = run_on("reference", FeDXL2(ALPHA, GAMMA, BETA), CASE, PLAN).last
    assert gap(last, fedxl2(CASE, PLAN, gamma=0.9)["x"]) > CLEARLY
    assert gap(last, fedxl2(CASE, replace(PLAN, weights="size"))["x"]) > CLEARLY


def test_the_first_round_is_that_of_sox_and_the_second_is_not():
    one, two = replace(PLAN, rounds=1), replace(PLAN, rounds=2)
    pairs = [
        [run_on("reference", kind(ALPHA, GAMMA, BETA), CASE, plan) for kind in (FeDXL2, SOX)] for plan in (one, two)
    ]
    assert_close(pairs[0][0].last, pairs[0][1].last)
    assert gap(pairs[1][0].last, pairs[1][1].last) > CLEARLY


# ----------------------------------------------------------- what it minimises: precision over all clients


@dataclass(frozen=True)
class Everything(AUPRC):
    """AUPRC without sampling: every step sees all of a client's positives and examples."""

    def sample_outer(self, data, rng, shape):
        positives = data.labels.nonzero().squeeze(1)
        which = torch.arange(len(positives)).expand(*shape[:-1], -1)
        return Positives(which, data.inputs[positives[which]])

    def sample_inner(self, data, rng, xi, m):
        lead = (*xi.which.shape[:-1], 1)
        return Examples(data.inputs.expand(*lead, -1, -1), data.labels.expand(*lead, -1))


def with_unlike_offsets() -> list[Examples]:
    """Return clients whose scores differ in level, and in whether they are ranked well."""
    shifts = (-1.5, 0.0, 1.0, 2.5)
    return [Examples(data.inputs + shift, data.labels) for data, shift in zip(sites(), shifts, strict=True)]


def gradient_over_all(x: torch.Tensor, clients: list[Examples], weights: list[float]) -> torch.Tensor:
    """Return the gradient of −Σ_i w_i E_{z⁺ ∈ i} g₁/g₂, where g is the weighted mean over ALL clients' examples."""
    x = x.clone().requires_grad_()
    scores = [data.inputs @ x[:-1] + x[-1] for data in clients]
    value = 0.0
    for weight, own, data in zip(weights, scores, clients, strict=True):
        for z in own[data.labels == 1]:
            losses = [(1 - z + other).clamp_min(0) ** 2 for other in scores]
            g_1 = sum(w * (ell * d.labels).mean() for w, ell, d in zip(weights, losses, clients, strict=True))
            g_2 = sum(w * ell.mean() for w, ell in zip(weights, losses, strict=True))
            value = value - weight / sum(weights) / int(data.labels.sum()) * g_1 / g_2
    return torch.autograd.grad(value, x)[0]


def direction_of(method, clients, weights="uniform"):
    """Return how far a method moves x in its third round of one step, divided by a tiny learning rate, and that x.

    In the first round there are no pools, and in the second f'(u') is still that of the first.
    """
    case = Case(Everything(Scores(linear), itself=0.0, **PAPERS_SURROGATE), clients)
    shared = []
    trace = run_on(
        "reference",
        method,
        case,
        Plan(rounds=3, local_steps=1, weights=weights),
        callbacks=[lambda now: shared.append(now.snapshot().state["shared"]["x"])],
    )
    return (as_vector(shared[1]) - as_vector(trace.last)) / TINY, as_vector(shared[1])


TINY = 1e-6


@pytest.mark.parametrize("weights", ["uniform", "size"])
def test_its_direction_is_the_gradient_of_precision_over_all_clients(weights):
    clients = with_unlike_offsets()
    found, x = direction_of(FeDXL2(TINY, tracking=1.0, momentum=1.0), clients, weights)
    sizes = [float(len(data.labels)) if weights == "size" else 1.0 for data in clients]
    exact = gradient_over_all(x, clients, sizes)
    assert float((found - exact).norm() / exact.norm()) < 1e-4  # the pools are one step of length 1e-6 old
    apart, _ = direction_of(FCSG(TINY), clients, weights)
    cosine = torch.nn.functional.cosine_similarity(apart, exact, dim=0)
    assert cosine < 0.9  # precision at each client alone is another objective


# ---------------------------------------------------------------------------------------- what is sent


def test_scores_of_single_examples_are_sent_and_counted():
    trace = run_on("reference", FeDXL2(), CASE, PLAN)
    b, m, clients = 3, 4, 4
    in_first_round, later = (5 + b, 2 * m), (2 * b, 2 * m)
    assert trace.shared["outer"]["entries"]["score"].shape == (clients * later[0],)
    assert trace.shared["inner"]["entries"]["score"].shape == (clients * later[1],)

    def size(outer, inner, received):
        """Bytes of (a, f'(u)) and of (c, whether it is positive); who receives them also gets a weight."""
        return outer * (24 + 8 * received) + inner * (9 + 8 * received)

    rounds, model = PLAN.rounds, 2 * nbytes(trace.last)
    up = clients * (rounds * model + size(*in_first_round, False) + (rounds - 1) * size(*later, False))
    pools = [size(*in_first_round, True), *[size(*later, True)] * (rounds - 2)]
    assert trace.costs.bytes_up == up
    assert trace.costs.bytes_down == clients * (rounds * model + clients * sum(pools))


@pytest.mark.parametrize("name", CASES)
def test_a_problem_that_does_not_compare_scores_is_refused(name):
    with pytest.raises(FedcsoError, match=r"FeDXL2 can't be used with \w+: it needs a problem that compares scores"):
        Job(FeDXL2(), CASES[name], Plan())


def test_a_batch_for_each_positive_is_compared_with_all():
    """η do not depend on ξ, so that what was drawn for one positive serves all of them."""
    problem = AUPRC(Scores(linear), shared=False)
    (batch,) = split_steps(sample(problem, labelled(12, 4), stream(0, 0, 0), 1, 3, 5), 1)
    outer, inner = problem.score(as_model(torch.ones(4, dtype=torch.float64)), *batch)
    flat = problem.compare(outer, {name: leaf.flatten() for name, leaf in inner.items()})
    one_row = Batch(batch.xi, Examples(*(leaf.flatten(0, 1).unsqueeze(0) for leaf in batch.eta)))
    assert_close(flat, problem.inner(as_model(torch.ones(4, dtype=torch.float64)), *one_row))


def at_level(level: float, seed: int, number: int = 200) -> Examples:
    """Return examples whose informative feature is shifted by the client's level; the next feature reads that level."""
    rng = torch.Generator().manual_seed(seed)
    labels = (torch.rand(number, generator=rng) < 0.1).long()
    inputs = torch.randn(number, 3, generator=rng, dtype=torch.float64)
    inputs[:, 0] += 1.2 * labels + level
    inputs[:, 1] = 0.7 * level + 0.3 * inputs[:, 1]
    return Examples(inputs, labels)


def test_clients_whose_scores_differ_in_level_are_ranked_together():
    """Comparisons within clients can't tell that the level has to be subtracted, which costs average precision."""
    levels = (-3.0, -1.0, 1.0, 3.0)
    tests = [at_level(level, seed=10 + n, number=1000) for n, level in enumerate(levels)]
    problem = AUPRC(Scores(linear))
    case = Case(
        problem,
        [at_level(level, seed=n) for n, level in enumerate(levels)],
        Examples(*(torch.cat(parts) for parts in zip(*tests, strict=True))),
        judge=ranking_judge(problem.scores),
    )
    plan = Plan(rounds=30, local_steps=3, outer_batch=8, inner_batch=16, evaluate_every=30, clip=1.0)
    together, apart = (
        run_on("reference", method, case, plan) for method in (FeDXL2(0.4, 0.5, 0.3), SOX(0.4, 0.5, 0.3))
    )
    slopes = [float(trace.last["weight"][0, 1] / trace.last["weight"][0, 0]) for trace in (together, apart)]
    assert slopes[0] < slopes[1] - 0.3
    assert together.rows[-1]["average_precision"] > apart.rows[-1]["average_precision"] + 0.02
