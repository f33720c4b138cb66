"""Stratified inner samples: unbiased for the chosen prevalence, exactly, and less noisy where positives are rare."""

from itertools import product

import pytest
import torch

from fedcso.core.errors import InvalidValue
from fedcso.core.estimator import sample
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, split_steps
from fedcso.core.streams import stream
from fedcso.datasets import Examples
from fedcso.estimators.plain import plain
from fedcso.problems import AUPRC
from fedcso.problems.auprc import Positives, auprc
from fedcso.problems.scores import Scores
from fedcso.problems.strata import Strata, Weighted
from tests.helpers import CLEARLY, SETTINGS, assert_close, assert_same_run, gap, run_on
from tests.rare import PAPERS_SURROGATE, as_model, as_vector, auprc_case, labelled, linear

DATA = labelled(12, 3)
X = torch.tensor([0.6, -0.4, 0.9, 0.2], dtype=torch.float64)
POSITIVE = Positives(torch.tensor([1]), DATA.inputs[DATA.labels == 1][1:2])


def problem(strata=None, **options):
    return AUPRC(Scores(linear), itself=0.0, strata=strata or Strata(), **PAPERS_SURROGATE, **options)


def ghat(examples, weights=None):
    """Return ĝ of the positive for one inner batch."""
    eta = [leaf.unsqueeze(0) for leaf in examples]
    eta = Examples(*eta) if weights is None else Weighted(*eta, weights.unsqueeze(0))
    return problem().inner(as_model(X), POSITIVE, eta)[0]


def population(prevalence=None):
    """Return E g for the positive, with the client's own share of positives or another."""
    of_kind = [ghat(Examples(DATA.inputs[DATA.labels == label], DATA.labels[DATA.labels == label])) for label in (0, 1)]
    share = float(DATA.labels.double().mean()) if prevalence is None else prevalence
    return (1 - share) * of_kind[0] + share * of_kind[1]


def expectation(strata, m, weighted=True):
    """Return E ĝ exactly, over all batches of m samples that the strata can draw."""
    count = min(max(round(strata.positives * m), 1), m - 1)
    own = float(DATA.labels.double().mean())
    aim = own if strata.prevalence is None else strata.prevalence
    kinds = [(DATA.labels == label).nonzero().squeeze(1).tolist() for label in (1, 0)]
    found = []
    for chosen in product(*[kinds[0]] * count, *[kinds[1]] * (m - count)):
        labels = DATA.labels[list(chosen)]
        weights = torch.tensor([(1 - aim) * m / (m - count), aim * m / count], dtype=torch.float64)[labels]
        found.append(ghat(Examples(DATA.inputs[list(chosen)], labels), weights if weighted else None))
    return torch.stack(found).mean(0)


@pytest.mark.parametrize("prevalence", [None, 0.02])
@pytest.mark.parametrize(("share", "m"), [(0.5, 2), (0.5, 3), (0.9, 3)])
def test_the_weighted_mean_is_unbiased_and_the_plain_one_is_not(share, m, prevalence):
    strata = Strata(share, prevalence)
    assert_close(expectation(strata, m), population(prevalence), tolerance=1e-14)
    assert gap(expectation(strata, m, weighted=False), population(prevalence)) > CLEARLY


def drawn(strata, m, batches=4000, data=DATA, seed=0):
    rng = stream(seed, 0, 0)
    return strata.draw(data, rng, (batches,), m)


@pytest.mark.parametrize("strata", [Strata(0.5), Strata(0.3, 0.02), Strata(prevalence=0.02)])
def test_what_is_drawn_has_these_shares_and_weights(strata):
    m = 10
    batch = drawn(strata, m)
    positives = batch.labels.double().sum(-1)
    if strata.positives is not None:
        assert set(positives.tolist()) == {strata.positives * m}
        assert_close(batch.weights.sum(-1), torch.full((4000,), float(m), dtype=torch.float64), tolerance=1e-12)
    aim = strata.prevalence or 0.25
    share = float((batch.weights * batch.labels).sum() / batch.weights.sum())
    assert share == pytest.approx(aim, rel=0.05)
    for label in (0, 1):  # all examples of a kind are equally likely
        shown = batch.inputs[batch.labels == label][:, 0]
        counts = torch.stack([(shown == value).double().mean() for value in DATA.inputs[DATA.labels == label][:, 0]])
        assert counts.max() / counts.min() < 1.2


def test_samples_are_in_random_order():
    """Estimators that split them into halves need halves that are alike."""
    batch = drawn(Strata(0.5), 10)
    first = batch.labels[:, :5].double().mean()
    assert float(first) == pytest.approx(0.5, abs=0.02)


RARE = labelled(1000, 10, seed=3)


def spread(strata, m=32, batches=2000):
    """Return the relative variances of ĝ₁ and ĝ₂ over inner batches, for one positive."""
    batch = drawn(strata, m, batches, RARE) if not strata.plain else drawn(Strata(prevalence=0.01), m, batches, RARE)
    positive = Positives(torch.zeros(batches, dtype=torch.int64), RARE.inputs[RARE.labels == 1][:1].expand(batches, -1))
    values = problem().inner(as_model(X), positive, batch)
    return values.var(0) / values.mean(0) ** 2


def test_the_variance_is_lower_where_positives_are_rare():
    """At 1 % positives and m = 32, half of the samples positive: ĝ₁ varies less than a twentieth as much."""
    plain_one, half = spread(Strata()), spread(Strata(0.5))
    assert half[0] < plain_one[0] / 20
    assert half[1] < 3 * plain_one[1]  # the price: half as many negatives


def gradient_noise(strata, itself, m=32, draws=300):
    """Return the total variance of ∇F̂ over inner batches, at 2 % positives, all of which are ranked."""
    data = labelled(1000, 20, seed=3)
    case = AUPRC(Scores(linear), itself=itself, strata=strata, **PAPERS_SURROGATE)
    oracle, rng = Oracle(case, plain), stream(7, 0, 0)
    xi = Positives(torch.arange(20), data.inputs[data.labels == 1])
    batches = [Batch(xi, case.sample_inner(data, rng, xi, m)) for _ in range(draws)]
    return float(torch.stack([as_vector(oracle.grad(as_model(X), batch)) for batch in batches]).var(0).sum())


def test_a_few_more_positives_halve_the_noise_of_the_literal_gradient_and_many_raise_it():
    """ĝ₁ is not all: negatives that are left out make g₂ noisier, so a small share is best."""
    as_in_the_data, few, half = (gradient_noise(Strata(share), itself=0.0) for share in (None, 0.1, 0.5))
    assert few < 0.6 * as_in_the_data
    assert half > 1.5 * as_in_the_data


# --------------------------------------------------------------------------------------------- in runs


def test_by_default_samples_and_numbers_are_as_before():
    (batch,) = split_steps(sample(problem(), DATA, stream(0, 0, 0), 1, 3, 5), 1)
    assert isinstance(batch.eta, Examples)
    rng = stream(0, 0, 0)
    torch.randint(3, (1, 3), generator=rng)
    assert torch.equal(batch.eta.labels[0], DATA.labels[torch.randint(12, (1, 1, 5), generator=rng)][0, 0])


@pytest.mark.parametrize("shared", [True, False])
def test_all_engines_agree(shared):
    case = auprc_case((9, 3), (12, 2), strata=Strata(0.5, 0.1), shared=shared)
    plan = Plan(rounds=2, local_steps=2, outer_batch=3, inner_batch=4)
    one, other = (run_on(engine, SETTINGS["Acc-FCSG-M"], case, plan) for engine in ("reference", "stacked"))
    assert_same_run(one, other)


def test_a_site_with_positives_only_does_not_train():
    all_positive = labelled(5, 5)
    assert problem().trains(all_positive)
    assert not problem(Strata(0.5)).trains(all_positive)


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, True, "half"])
@pytest.mark.parametrize("name", ["inner_positives", "prevalence"])
def test_shares_are_between_0_and_1(name, value):
    with pytest.raises(InvalidValue, match=f"^{name} = "):
        auprc(data="digits", clients=2, **{name: value})


def test_one_sample_can_not_be_of_both_kinds():
    with pytest.raises(InvalidValue, match="inner_batch = 1 must be at least 2"):
        drawn(Strata(0.5), 1)


def test_options_reach_the_problem():
    task = auprc(data="digits", clients=2, inner_positives=0.5, prevalence=0.02)
    assert task.problem.strata == Strata(0.5, 0.02)
