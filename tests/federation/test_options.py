"""The options of a run over real sites: what is allowed, and what is said of the rest."""

import pytest

from fedcso.algorithms import FCSG, SLATE, FeDXL2
from fedcso.codecs import BFloat16, Inferred, Int8, Occasional
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.federation.options import Federation, run_config


def test_sites_are_a_number_or_names():
    assert Federation("4").names == ["0", "1", "2", "3"]
    assert Federation("oslo, rome,berlin").names == ["oslo", "rome", "berlin"]


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("sites", {"sites": "oslo,oslo"}),
        ("sites", {"sites": "../etc,b"}),
        ("sites", {"sites": ""}),
        ("sites", {"sites": "1" + "0" * 400}),
        ("sites", {"sites": "2147483648"}),
        ("sites", {"sites": "0", "min_sites": 1}),
        ("min_sites", {"min_sites": 4}),
        ("min_sites", {"min_sites": 0}),
        ("round_seconds", {"round_seconds": 0.0}),
        ("aggregate", {"aggregate": "mode"}),
        ("trim", {"trim": 0.5}),
        ("outlier", {"outlier": 0.5}),
        ("dp_delta", {"dp_delta": 1.0}),
        ("dp_noise", {"dp_noise": 1.0}),
        ("dp_noise", {"dp_noise": 1.0, "clip_update": 1.0, "aggregate": "median"}),
        ("clip_update", {"clip_update": float("nan")}),
        ("aggregate", {"secure_aggregation": True, "aggregate": "median"}),
        ("aggregate", {"secure_aggregation": True, "aggregate": "trimmed_mean"}),
        ("outlier", {"secure_aggregation": True, "outlier": 10.0}),
        ("sites", {"secure_aggregation": True, "sites": "oslo", "min_sites": 1}),
        ("secure_threshold", {"secure_aggregation": True, "secure_threshold": 1}),
        ("secure_threshold", {"secure_aggregation": True, "secure_threshold": 4}),
        ("secure_range", {"secure_aggregation": True, "secure_range": "x"}),
    ],
)
def test_a_mistake_names_the_field(field, options):
    with pytest.raises(InvalidValue, match=field) as raised:
        Federation(**options)
    assert raised.value.field == field


def test_noise_wants_sites_that_count_alike_and_leaves_outliers_to_clipping():
    federation = Federation(dp_noise=1.0, clip_update=1.0)
    assert federation.too_long == 0
    assert Federation().too_long == 1000
    federation.check(Plan(weights="uniform"))
    with pytest.raises(InvalidValue, match="weights"):
        federation.check(Plan(weights="size"))


def test_sites_samples_are_not_looked_at():
    with pytest.raises(InvalidValue, match="diagnose_every"):
        Federation().check(Plan(diagnose_every=5))


@pytest.mark.parametrize(("method", "plan"), [(SLATE(), Plan()), (FCSG(), Plan(topology="ring"))])
def test_sites_are_no_neighbours(method, plan):
    Federation().check_method(FCSG(), Plan())
    with pytest.raises(InvalidValue, match="topology = 'ring' must be server over real sites"):
        Federation().check_method(method, plan)


def test_with_noise_sites_with_tables_of_their_own_count_alike():
    """Without noise they count by their rows; the privacy of noise is computed for equal weights."""
    settings = {"problem": "auprc", "clip_update": 1.0}
    assert run_config(settings).plan.weights is None
    assert run_config(settings | {"dp_noise": 1.0}).plan.weights == "uniform"
    assert run_config(settings | {"dp_noise": 1.0, "weights": "size"}).plan.weights == "size"


def test_a_secure_sum_needs_more_than_half_of_the_participants():
    assert [Federation(secure_aggregation=True).threshold(n) for n in (2, 3, 4, 5, 10)] == [2, 2, 3, 3, 6]
    four = Federation("4", secure_aggregation=True)
    four.check(Plan(participation=2))
    with pytest.raises(InvalidValue, match="participation = 1 must be larger: a secure sum needs 2 sites"):
        four.check(Plan(participation=1))
    with pytest.raises(InvalidValue, match="secure_threshold = 2 must be more than half of the 4 participants"):
        Federation("4", secure_aggregation=True, secure_threshold=2).check(Plan())
    Federation("4", secure_aggregation=True, secure_threshold=2).check(Plan(participation=3))


def test_only_what_is_sent_as_it_is_can_be_summed_securely():
    federation = Federation(secure_aggregation=True)
    for codec in (Occasional(2), Inferred()):
        federation.check_method(FCSG(), Plan(), codec)
    for codec in (Int8(), BFloat16()):
        Federation().check_method(FCSG(), Plan(), codec)
        with pytest.raises(InvalidValue, match="only what is sent as it is can be summed"):
            federation.check_method(FCSG(), Plan(), codec)
    with pytest.raises(InvalidValue, match="secure_aggregation = True must be left out: FeDXL2 concatenates"):
        federation.check_method(FeDXL2(), Plan())
