"""Average precision as a nested objective: g and f by hand, `itself`, and the shared inner batch."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fedcso.algorithms import FCSG, FCSGM, SOAP, SOX, AccFCSGM, LocalSCGD, Scaffold
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.estimator import sample
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, split_steps
from fedcso.core.streams import stream
from fedcso.core.tree import is_finite
from fedcso.datasets import Examples
from fedcso.engines import simulation, stacked
from fedcso.engines.job import Job
from fedcso.estimators.plain import plain
from fedcso.problems.auprc import AUPRC, Positives, auprc
from fedcso.problems.scores import Scores, ranking_judge
from tests import transcription as literal
from tests.helpers import CLEARLY, Case, assert_close, assert_same_run, finite_difference, gap, run_on
from tests.rare import (
    FEATURES,
    PAPERS_SURROGATE,
    as_model,
    as_vector,
    auprc_case,
    auprc_gradient,
    ghat,
    h,
    identity,
    inner_of,
    labelled,
    linear,
)

DATA = labelled(12, 4)
X = torch.tensor([0.6, -0.4, 0.9, 0.2], dtype=torch.float64)
WAYS = {
    "the paper's": {},
    "raw scores": {"sigmoid": False, "margin": 1.0},
    "a batch for each": {"shared": False},
    "literally": {"itself": 0.0},
    "literally, raw, a batch for each": {"itself": 0.0, "sigmoid": False, "margin": 1.0, "shared": False},
    "itself twice and a half": {"itself": 2.5, "margin": 0.3},
    "bounded": {"bounded": True, "margin": 0.3},
    "log precision": {"logarithm": True},
    "the default": {"bounded": True, "logarithm": True},
    "log precision, bounded, sigmoid": {"logarithm": True, "bounded": True, "sigmoid": True, "margin": 0.2},
}
every_way = pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)


def a_problem(**options) -> AUPRC:
    """Return a problem with the paper's surrogate unless the options say otherwise."""
    return AUPRC(Scores(linear), **(PAPERS_SURROGATE | options))


def a_batch(problem: AUPRC, b: int = 3, m: int = 5) -> Batch:
    (batch,) = split_steps(sample(problem, DATA, stream(0, 0, 0), 1, b, m), 1)
    return batch


a_score = st.floats(-3, 3) | st.sampled_from([0.0, 1e-9, -1e-9, 1e-25])
some_others = st.lists(st.tuples(a_score, st.integers(0, 1)), min_size=1, max_size=6)
a_margin = st.floats(0.01, 2.0)


# ------------------------------------------------------------------------------------------ by hand


def on_scores(positive: float, others: list[float], labels: list[int], dtype=torch.float64, **options):
    """Return ĝ, f and ∂f in the scores for one positive among others; x holds the scores, and inputs select them."""
    problem = AUPRC(Scores(nn.Linear(1 + len(others), 1, bias=False)), **(PAPERS_SURROGATE | options))
    pick = torch.eye(1 + len(others), dtype=dtype)
    batch = Batch(Positives(torch.tensor([0]), pick[:1]), Examples(pick[None, 1:], torch.tensor([labels])))
    x = {"weight": torch.tensor([[positive, *others]], dtype=dtype)}
    value, gradient = Oracle(problem, plain).value_and_grad(x, batch)
    (y,) = problem.inner(x, *batch)
    return y.tolist(), value.item(), gradient["weight"].flatten()


@pytest.mark.parametrize(
    ("itself", "g", "f"),
    [
        (0.0, [4 / 3, 4.25 / 3], -4 / 4.25),
        (1.0, [5 / 4, 5.25 / 4], -5 / 5.25),
        (3.0, [7 / 6, 7.25 / 6], -7 / 7.25),
    ],
)
def test_g_and_f_on_tiny_numbers(itself, g, f):
    """s = 1 and h(z⁺) = 2; ℓ = (1 − 2 + 3)² = 4 against a positive, (1 − 2 + 1.5)² = ¼ and 0 against negatives."""
    y, value, _ = on_scores(2.0, [3.0, 1.5, 0.5], [1, 0, 0], margin=1.0, sigmoid=False, itself=itself)
    assert y == pytest.approx(g, rel=1e-15)
    assert value == pytest.approx(f, rel=1e-15)


def test_cross_entropy_is_a_third_entry_of_g():
    """g₃ is log(1 + e^−2) of z⁺, and the mean of log(1 + e^h) of the negatives among all three inner samples."""
    scores = 2.0, [3.0, 1.5, 0.5], [1, 0, 0]
    alone, f, slope = on_scores(*scores)
    y, value, gradient = on_scores(*scores, cross_entropy=0.3)
    entropy = math.log1p(math.exp(-2)) + (math.log1p(math.exp(1.5)) + math.log1p(math.exp(0.5))) / 3
    assert y == pytest.approx([*alone, entropy], rel=1e-15)
    assert value == pytest.approx(f + 0.3 * entropy, rel=1e-15)
    sigmoid = torch.tensor([-2.0, 0.0, 1.5, 0.5], dtype=torch.float64).sigmoid() * torch.tensor(
        [-1, 0, 1 / 3, 1 / 3], dtype=torch.float64
    )
    assert_close(gradient, slope + 0.3 * sigmoid)


def test_cross_entropy_needs_raw_scores():
    with pytest.raises(InvalidValue, match=r"cross_entropy = 1\.0 must be 0 with sigmoid"):
        a_problem(cross_entropy=1.0, sigmoid=True)


def test_log_precision_needs_the_positive_among_its_own_samples():
    with pytest.raises(InvalidValue, match=r"itself = 0\.0 must be above 0 with logarithm"):
        a_problem(logarithm=True, itself=0.0)


def test_bounded_counts_positives_far_above_like_the_positive_itself():
    """s = 1 and h(z⁺) = 2; ℓ = 4 and 25 against positives count 1 each, and ¼ within the margin stays ¼."""
    scores = 2.0, [3.0, 6.0, 1.5, 1.5], [1, 1, 1, 0]
    y, value, gradient = on_scores(*scores, bounded=True)
    assert y == pytest.approx([(1 + 1 + 1 + 0.25) / 5, (1 + 1 + 1 + 0.25 + 0.25) / 5], rel=1e-15)
    assert value == pytest.approx(-3.25 / 3.5, rel=1e-15)
    assert gradient[1:3].tolist() == [0.0, 0.0]  # to move them further above is no gain
    _, _, unbounded = on_scores(*scores)
    assert (unbounded[1:3] < 0).all()


def test_log_precision_pulls_harder_by_one_over_the_precision():
    scores = 2.0, [3.0, 2.5, 1.5, 4.0], [1, 0, 0, 0]
    _, value, gradient = on_scores(*scores)
    _, log, of_log = on_scores(*scores, logarithm=True)
    assert log == pytest.approx(-math.log(-value), rel=1e-15)
    assert_close(of_log, gradient / -value)


@given(a_score, some_others, a_margin)
def test_bounded_precision_lies_between_zero_and_one_and_never_rises_with_a_negative(positive, others, margin):
    options = {"margin": margin, "bounded": True}
    scores, labels = map(list, zip(*others, strict=True))
    _, value, _ = on_scores(positive, scores, labels, **options)
    assert -1 - 1e-12 <= value < 0
    higher = [score + (1 - label) for score, label in others]
    _, worse, _ = on_scores(positive, higher, labels, **options)
    assert worse >= value - 1e-12


def test_scores_are_raw_unless_they_go_through_a_sigmoid():
    """The logits ln 3 and −ln 3 have the scores ¾ and ¼; the logits differ by more than the margin."""
    scores = math.log(3), [-math.log(3), math.log(3)], [0, 1]
    y, _, _ = on_scores(*scores, margin=0.75, itself=0.0, sigmoid=True)
    assert y == pytest.approx([0.75**2 / 2, (0.25**2 + 0.75**2) / 2], rel=1e-12)
    y, _, _ = on_scores(*scores, margin=0.75, itself=0.0)
    assert y == pytest.approx([0.75**2 / 2, 0.75**2 / 2], rel=1e-12)


@every_way
def test_values_are_sums_over_the_inner_samples_of_each_positive(options):
    problem = a_problem(**options)
    batch = a_batch(problem)
    values = problem.inner(as_model(X), batch.xi, batch.eta)
    assert values.shape == (3, 2)
    for place, positive in enumerate(batch.xi.inputs):
        value, _ = ghat(problem, X, positive, inner_of(batch, place))
        assert_close(values[place], value)
        precision = value[0] / value[1]
        assert_close(problem.outer(values, batch.xi)[place], -precision.log() if problem.logarithm else -precision)


@every_way
def test_the_gradient_is_the_one_by_hand_and_that_of_finite_differences(options):
    problem = a_problem(**options)
    batch = a_batch(problem)
    oracle = Oracle(problem, plain)
    gradient = as_vector(oracle.grad(as_model(X), batch))
    assert gradient.norm() > CLEARLY
    assert_close(gradient, auprc_gradient(problem, X, batch))
    assert_close(gradient, finite_difference(lambda x: oracle.value(as_model(x), batch), X), tolerance=1e-7)


@pytest.mark.parametrize("options", [{}, {"sigmoid": False, "margin": 1.0}], ids=["sigmoid", "raw"])
def test_with_all_data_as_inner_samples_it_is_minus_the_surrogate_precision(options):
    """Compute the objective by a double loop over positives and all examples, which include each positive once."""
    problem = a_problem(itself=0.0, **options)
    positives = DATA.labels.nonzero().squeeze(1)
    xi = Positives(torch.arange(len(positives)), DATA.inputs[positives])
    eta = Examples(DATA.inputs.unsqueeze(0), DATA.labels.unsqueeze(0))
    precisions = []
    for i in positives:
        above, above_and_positive = 0.0, 0.0
        for j in range(len(DATA.labels)):
            here, there = (h(X, DATA.inputs[n], problem.sigmoid)[0].item() for n in (i, j))
            loss = max(problem.margin - here + there, 0.0) ** 2
            above += loss
            above_and_positive += loss if DATA.labels[j] == 1 else 0.0
        precisions.append(above_and_positive / above)
    objective = Oracle(problem, plain).value(as_model(X), Batch(xi, eta))
    assert objective.item() == pytest.approx(-sum(precisions) / len(precisions), rel=1e-12)


# ---------------------------------------------------------------------------------- the positive itself


@given(a_score, some_others, a_margin)
def test_the_positive_itself_keeps_g2_away_from_zero(positive, others, margin):
    (_, g2), value, _ = on_scores(positive, *map(list, zip(*others, strict=True)), margin=margin, sigmoid=False)
    assert g2 >= margin**2 / (len(others) + 1) * (1 - 1e-12)
    assert -1 - 1e-12 <= value <= 0


@pytest.mark.parametrize("m", [1, 7])
def test_a_positive_above_all_others_is_as_good_as_can_be_and_pulls_no_more(m):
    others, labels = [0.3 * j for j in range(m)], [j % 2 for j in range(m)]
    (_, g2), value, gradient = on_scores(5.0, others, labels, margin=0.5, sigmoid=False)
    assert (g2, value) == (0.25 / (m + 1), -1.0)
    assert torch.equal(gradient, torch.zeros(1 + m, dtype=torch.float64))
    _, value, gradient = on_scores(0.2, others, labels, margin=0.5, sigmoid=False)  # a negative is within the margin
    assert value > -1 + CLEARLY
    assert gradient.abs().max() > CLEARLY


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(a_score, some_others, a_margin)
def test_without_it_the_estimate_is_literal_and_still_a_number(dtype, positive, others, margin):
    options = {"margin": margin, "sigmoid": False, "itself": 0.0}
    y, value, gradient = on_scores(positive, *map(list, zip(*others, strict=True)), dtype=dtype, **options)
    losses = [max(margin - positive + score, 0.0) ** 2 for score, _ in others]
    ranked = [loss for loss, (_, label) in zip(losses, others, strict=True) if label == 1]
    wanted = [sum(ranked) / len(others), sum(losses) / len(others)]
    assert y == pytest.approx(wanted, rel=1e-3 if dtype == torch.float32 else 1e-9, abs=1e-9)
    assert math.isfinite(value)
    assert torch.isfinite(gradient).all()


def test_where_nothing_is_near_the_literal_estimate_is_zero_without_a_gradient():
    y, value, gradient = on_scores(5.0, [0.0], [1], margin=0.5, sigmoid=False, itself=0.0)
    assert (y, value) == ([0.0, 0.0], 0.0)
    assert torch.equal(gradient, torch.zeros(2, dtype=torch.float64))


# ------------------------------------------------------------------------------- one inner batch for all


class Counting(nn.Module):
    """A network that records the number of examples in each of its forward passes."""

    passes: list[int] = []  # noqa: RUF012 - shared by all copies, on purpose

    def __init__(self):
        super().__init__()
        self.layer = linear()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.passes.append(len(inputs))
        return self.layer(inputs)


@pytest.mark.parametrize(("shared", "rows"), [(True, 4 + 6), (False, 4 + 4 * 6)])
def test_a_gradient_needs_one_pass_over_as_many_examples_as_were_drawn(shared, rows):
    problem = AUPRC(Scores(Counting), shared=shared)
    batch = a_batch(problem, b=4, m=6)
    Counting.passes.clear()
    Oracle(problem, plain).grad(problem.init(stream(0, 0, 0)), batch)
    assert Counting.passes == [rows]


def test_a_shared_inner_batch_gives_what_the_same_samples_give_each_by_itself():
    batch = a_batch(a_problem())
    assert batch.eta.labels.shape == (1, 5)
    repeated = Batch(batch.xi, Examples(*(leaf.expand(3, *leaf.shape[1:]) for leaf in batch.eta)))
    one = Oracle(a_problem(), plain).value_and_grad(as_model(X), batch)
    assert_close(one, Oracle(a_problem(shared=False), plain).value_and_grad(as_model(X), repeated))


def test_inner_samples_are_counted_as_they_are_drawn():
    case, plan = auprc_case(), Plan(rounds=2, local_steps=3, outer_batch=4, inner_batch=5)
    assert (case.problem.inner_samples(4, 5), a_problem(shared=False).inner_samples(4, 5)) == (5, 20)
    steps = plan.total_steps * len(case.clients)
    assert run_on("reference", FCSG(), case, plan).costs.inner_samples == 5 * steps
    assert run_on("stacked", FCSG(), auprc_case(shared=False), plan).costs.inner_samples == 20 * steps


# -------------------------------------------------------------------------------------------- sampling

DRAWS = 8000


def frequencies_are_even(numbers: torch.Tensor, kinds: int) -> bool:
    p = 1 / kinds
    counts = torch.bincount(numbers, minlength=kinds)
    return bool(((counts - len(numbers) * p).abs() < 4 * math.sqrt(len(numbers) * p * (1 - p))).all())


NUMBERED = Examples(torch.arange(5, dtype=torch.float64).unsqueeze(1), torch.tensor([0, 1, 0, 0, 1]))
"""Examples whose inputs are their indices."""


def test_outer_samples_are_positives_all_of_them_equally_often():
    xi = AUPRC(identity()).sample_outer(NUMBERED, stream(0, 0, 0), (DRAWS,))
    assert torch.equal(xi.inputs.squeeze(1), torch.tensor([1.0, 4.0], dtype=torch.float64)[xi.which])
    assert frequencies_are_even(xi.which, 2)
    assert torch.equal(AUPRC(identity()).which(xi), xi.which)


@pytest.mark.parametrize("shared", [True, False])
def test_inner_samples_are_any_examples_with_their_labels(shared):
    problem = AUPRC(identity(), shared=shared)
    xi = problem.sample_outer(NUMBERED, stream(0, 0, 0), (DRAWS, 2))
    eta = problem.sample_inner(NUMBERED, stream(1, 0, 0), xi, 3)
    assert eta.labels.shape == (DRAWS, 1 if shared else 2, 3)
    numbers = eta.inputs.squeeze(-1).long()
    assert torch.equal(NUMBERED.labels[numbers], eta.labels)
    assert frequencies_are_even(numbers[:, 0, 0], 5)
    assert frequencies_are_even(5 * numbers[:, 0, 0] + numbers[:, 0, 1], 25)  # pairs in a step are independent
    assert frequencies_are_even(5 * numbers[:-1, 0, 2] + numbers[1:, 0, 2], 25)  # and so are successive steps


def test_a_batch_for_each_positive_is_independent_of_the_others_and_of_the_positive():
    problem = AUPRC(identity(), shared=False)
    xi, eta = sample(problem, NUMBERED, stream(0, 0, 0), DRAWS, 2, 1)
    numbers = eta.inputs.squeeze(-1).squeeze(-1).long()
    assert frequencies_are_even(5 * numbers[:, 0] + numbers[:, 1], 25)
    assert frequencies_are_even(5 * xi.which[:, 0] + numbers[:, 0], 10)


# --------------------------------------------------------------------------------------- what it says


def test_it_knows_its_positives():
    problem = a_problem()
    nothing, none = labelled(0, 0), labelled(5, 0)
    assert [problem.outer_count(data) for data in (DATA, none, nothing)] == [4, 0, 0]
    assert [problem.size(data) for data in (DATA, none, nothing)] == [12, 5, 0]
    assert [problem.trains(data) for data in (DATA, none, nothing)] == [True, False, False]


def test_a_client_without_positives_is_told_where_it_is_asked_to_train():
    with pytest.raises(FedcsoError, match="no positive example"):
        a_problem().sample_outer(labelled(5, 0), stream(0, 0, 0), (1, 1))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("margin", 0.0),
        ("margin", -1.0),
        ("margin", math.inf),
        ("itself", -0.5),
        ("itself", math.nan),
        ("itself", math.inf),
    ],
)
def test_settings_are_checked(field, value):
    with pytest.raises(InvalidValue, match=f"{field} = {value}"):
        a_problem(**{field: value})


@pytest.mark.parametrize(("sigmoid", "shared"), [(True, False), (False, True)])
def test_the_task_takes_its_options_to_the_problem(sigmoid, shared):
    task = auprc("linear", 0.7, sigmoid, shared, 2.0, data="breast_cancer", clients=3)
    problem = task.problem
    assert (problem.margin, problem.sigmoid, problem.shared, problem.itself) == (0.7, sigmoid, shared, 2.0)
    assert sum(p.numel() for p in problem.init(stream(0, 0, 0)).values()) == 31
    assert len(task.clients) == 3


# -------------------------------------------------------------------------------------------- engines

METHODS = {
    "FCSG": FCSG(0.3),
    "FCSG-M": FCSGM(0.3, 0.4),
    "Acc-FCSG-M": AccFCSGM(0.3, 0.4),
    "Local-SCGD": LocalSCGD(0.3, 0.4),
    "SCAFFOLD": Scaffold(0.3),
    "SOAP": SOAP(0.3, 0.4),
    "SOX": SOX(0.3, 0.4, 0.3),
}
every_method = pytest.mark.parametrize("algorithm", METHODS.values(), ids=METHODS)
SIZES = {"rounds": 2, "local_steps": 2, "outer_batch": 2, "inner_batch": 3, "initial_batch": 4}
PLANS = {
    "everyone": Plan(**SIZES),
    "two by size": Plan(**SIZES, participation=2, weights="size"),
    "clipped": Plan(**SIZES, clip=0.2),
}


def assert_engines_agree(algorithm, case, plan):
    expected = run_on("reference", algorithm, case, plan)
    assert is_finite(expected.shared)
    assert_same_run(run_on("threads", algorithm, case, plan, workers=2), expected, tolerance=0.0)
    if algorithm.stacks:
        assert_same_run(run_on("stacked", algorithm, case, plan), expected, tolerance=1e-10)
    return expected


@every_method
@pytest.mark.parametrize("how", PLANS)
def test_engines_agree(algorithm, how):
    case, plan = auprc_case(shared=how != "two by size"), PLANS[how]
    trace = assert_engines_agree(algorithm, case, plan)
    assert gap(trace.last, Job(algorithm, case, plan).start()) > CLEARLY


@pytest.mark.parametrize("first", [False, True], ids=["at the end", "in front"])
@every_method
def test_engines_agree_where_a_site_has_no_positives(algorithm, first):
    counts = [(9, 3), (7, 2), (8, 1)]
    counts.insert(0 if first else 3, (6, 0))
    trace = assert_engines_agree(algorithm, auprc_case(*counts), Plan(**SIZES, participation=2))
    idle = 0 if first else 3
    assert trace.participation[idle] == 0
    assert trace.participation.total() == 2 * SIZES["rounds"]


@pytest.mark.parametrize("first", [False, True], ids=["at the end", "in front"])
def test_a_site_without_positives_does_not_hinder_the_choice_of_an_engine(first):
    case, nothing = auprc_case(), labelled(5, 0)
    clients = [nothing, case.clients[0]] if first else [case.clients[0], nothing]
    assert simulation.choose(Job(FCSG(), replace(case, clients=clients), Plan())) is stacked.ENGINE


def test_fcsg_m_is_algorithm_1_with_gradients_by_hand():
    case, alpha, beta = auprc_case(), 0.3, 0.4
    plan = Plan(rounds=3, local_steps=2, outer_batch=2, inner_batch=3)
    job = Job(FCSGM(alpha, beta), case, plan)

    def gradient(x, batch):
        return auprc_gradient(case.problem, x, batch)

    samples = literal.drawn(job)
    x, _ = literal.algorithm_1(as_vector(job.start()), samples, gradient, plan.total_steps, 2, alpha, beta)
    assert_close(as_vector(run_on("reference", job.algorithm, case, plan).last), x[-1][0])


def test_descent_on_it_ranks_positives_higher():
    """One feature separates the positives; the initial model ranks them last."""
    rng = torch.Generator().manual_seed(0)

    def examples(number):
        labels = (torch.arange(number) % 5 == 0).long()
        inputs = torch.randn(number, FEATURES, generator=rng, dtype=torch.float64)
        inputs[:, 0] += 3 * labels
        return Examples(inputs, labels)

    class Wrong(AUPRC):
        def init(self, rng):
            return as_model(torch.tensor([-1.0, 0.0, 0.0, 0.0], dtype=torch.float64))

    scores = Scores(linear)
    case = Case(Wrong(scores), [examples(40) for _ in range(3)], examples(200), judge=ranking_judge(scores))
    plan = Plan(rounds=10, local_steps=10, outer_batch=4, inner_batch=10, evaluate_every=10)
    precision = run_on("stacked", FCSG(1.0), case, plan).column("average_precision")
    assert precision[0] < 0.2
    assert precision[-1] > 0.9
