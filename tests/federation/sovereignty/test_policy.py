"""A site's policy: closed by default, and a function of (policy, request, date) that refuses what it does not name."""

import subprocess
import sys
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.federation.sovereignty.policy import (
    MESSAGES,
    OF_TRAINING,
    Policy,
    Refused,
    Request,
    columns_to_use,
    read_policy,
    refusal,
)
from fedcso.federation.sovereignty.secure_rules import SecureRules
from fedcso.federation.sovereignty.writing import policy_text, write_policy

TODAY = date.today()
SETTINGS = {
    "problem": "auprc",
    "algorithm": ["FCSG-M", "FedAdam(base=FCSG-M(momentum=0.5))"],
    "rounds": 5,
    "local_steps": 10,
    "outer_batch": 8,
    "learning_rate": 0.1,
    "label": "ill",
    "fast": True,
    "thresholds": {"recall": 0.8},
    "ξ name": "x",
    "init": None,
}
OWN = {"data": "/data/my.csv"}


@pytest.fixture
def policy(tmp_path):
    write_policy(tmp_path, policy_text(SETTINGS, ["/data/my.csv"], ["age", "weight, kg"]))
    return read_policy(tmp_path)


def request(kind="train", own=OWN, round=0, **changes):
    return Request(kind, SETTINGS | changes, own, "FCSG-M", round)


def refused(policy, *arguments, **changes):
    return refusal(policy, request(*arguments, **changes), TODAY)


@pytest.mark.parametrize("kind", MESSAGES)
def test_what_a_policy_was_written_for_is_allowed(policy, kind):
    assert refused(policy, kind) == ""


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kind": "delete"}, "message = 'delete' is not allowed"),
        ({"problem": "maml"}, "problem = 'maml' is not allowed: it is not in problems = ['auprc']"),
        ({"problem": None}, "problem = None"),
        ({"algorithm": ["FCSG-M", "FeDXL2"]}, "algorithm = 'FeDXL2'"),
        ({"algorithm": "FCSG-M(base=FeDXL2)"}, "algorithm = 'FCSG-M(base=FeDXL2)'"),
        ({"algorithm": None}, "algorithm = None"),
        ({"rounds": 6}, "rounds = 6 is more than max_rounds = 5"),
        ({"rounds": "5"}, "rounds = '5' is not a whole number"),
        ({"round": 5}, "rounds = 6 is more than"),
        ({"local_steps": 11}, "local_steps = 11 is more than max_local_steps = 10"),
        ({"local_steps": 1, "outer_batch": 1}, "local_steps times outer_batch = 1 is less than min_samples = 10"),
        ({"outer_batch": True}, "outer_batch = True is not a whole number"),
        ({"own": {"data": "/data/other.csv"}}, "data = '/data/other.csv' is not allowed"),
        ({"own": {}, "data": "/etc/passwd"}, "data = '/etc/passwd' is not allowed"),
        ({"columns": "age,name"}, "columns = 'name' is not allowed"),
        ({"label": "salary"}, "label = 'salary' is not allowed: it must be ['ill'] in [options]"),
        ({"fast": 1}, "fast = 1 is not allowed"),
        ({"momentum": 0.5}, "momentum = 0.5 is not allowed: it is not named in [options]"),
    ],
)
def test_what_it_does_not_name_is_refused_and_the_reason_names_setting_and_value(policy, changes, told):
    assert told in refused(policy, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithm": "FCSG-M(momentum=0.9)"},
        {"algorithm": ["FedAdam(base=FCSG-M(momentum=0.5))"]},
        {"rounds": 1, "learning_rate": 3},
        {"own": {"data": "/data/../data/my.csv"}},
        {"own": OWN | {"label": "krank"}, "label": "salary"},  # the site's own settings come before the coordinator's
        {"momentum": None},
    ],
)
def test_what_amounts_to_the_same_is_allowed(policy, changes):
    assert refused(policy, **changes) == ""


def test_a_policy_ends_after_its_last_day(policy):
    last = replace(policy, expires=TODAY)
    assert refused(last) == ""
    assert "expired on" in refusal(last, request(), date.fromordinal(TODAY.toordinal() + 1))


def test_rules_are_any_value_a_list_or_bounds(policy):
    for rule, fits, fails in (
        ("any", [1, "a", None, [2]], []),
        ([1, "a"], [1, 1.0, "a"], [True, "b", 2]),
        ({"least": 0, "most": 1}, [0, 1, 0.5], [-1, 2, "a", True, float("nan")]),
        ({"most": 1}, [-5], [1.5]),
    ):
        own = replace(policy, options={**policy.options, "momentum": rule})
        assert [value for value in fits + fails if refused(own, momentum=value)] == fails


def test_without_columns_in_the_request_those_of_the_policy_are_used(policy):
    assert columns_to_use(policy, request()) == 'age,"weight, kg"'
    assert columns_to_use(policy, request(columns="age")) == "age"
    assert columns_to_use(policy, request(own=OWN | {"columns": '"weight, kg"'})) == '"weight, kg"'
    assert columns_to_use(replace(policy, columns="any"), request()) == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from([*SETTINGS, "data", "columns", "momentum"]) | st.text(max_size=5)


@given(kind=st.sampled_from(MESSAGES) | st.text(max_size=5), settings=st.dictionaries(NAMES, JSON, max_size=6))
def test_the_closed_policy_allows_nothing_and_no_request_breaks_it(kind, settings):
    assert refusal(Policy(), Request(kind, settings, {}), TODAY)
    assert refusal(Policy(expires=date.max, messages=MESSAGES), Request(kind, settings, OWN), TODAY)


@given(name=st.text(max_size=8).filter(lambda name: name not in SETTINGS), value=JSON.filter(lambda v: v is not None))
def test_no_setting_with_another_name_gets_through(name, value):
    lenient = Policy(
        expires=date.max,
        messages=MESSAGES,
        problems=("auprc",),
        algorithms=tuple(SETTINGS["algorithm"]),
        max_rounds=9,
        max_local_steps=99,
        columns="any",
        options=dict.fromkeys(SETTINGS, "any"),
    )
    assert refusal(lenient, Request("train", SETTINGS, {}), TODAY) == ""
    if name != "columns":
        assert refusal(lenient, Request("train", SETTINGS | {name: value}, {}), TODAY)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "there is no policy"),
        ("", ""),
        ("smallest_count = ", "can't be used"),
        ("\x00\udcff", "can't be used"),
        ("smalest_count = 5", "unknown key 'smalest_count'; did you mean smallest_count"),
        ("smallest_count = -1", "smallest_count = -1 must be a whole number, at least 0"),
        ("smallest_count = true", "smallest_count = True must be"),
        ("messages = ['tell']", "messages = ('tell',) must be some of"),
        ("problems = 'auprc'", "problems = 'auprc' must be a list of texts"),
        ("expires = '2027-01-31'", "expires = '2027-01-31' must be a date without quotes"),
        ("expires = 2027-01-31T10:00:00", "must be a date"),
        ("options = 3", "options = 3 must be a table"),
        ("[options]\nlabel = 'ill'", "options.label = 'ill' must be"),
        ("[options]\nm = { most = 'a' }", "options.m = "),
        ("[update]\nnois = 1", "unknown key of [update] 'nois'; did you mean noise"),
        ("[update]\nnoise = 1", "update.noise = 1 must be 0 without clip"),
        ("[update]\nclip = 'a'", "update.clip = 'a' must be a finite number"),
        ("[update]\nclip = inf", "update.clip = inf must be"),
        ("[update]\nmax_epsilon = 1", "update.max_epsilon = 1 must be 0 without noise"),
        ("[update]\nclip = 1\nnoise = 1\nsites = 3", "update.sites = 3 must be 1 with gaussian = 'local'"),
        ("update = 3", "update = 3 must be a table"),
        ("a = " + "[" * 5000, "can't be used"),
    ],
)
def test_a_policy_that_is_not_understood_allows_nothing(tmp_path, text, told):
    if text is not None:
        (tmp_path / "site.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    if told:
        with pytest.raises(Refused) as error:
            read_policy(tmp_path)
        assert told in str(error.value)
    else:
        assert read_policy(tmp_path) == Policy()


def test_without_settings_the_policy_that_is_written_allows_nothing(tmp_path):
    write_policy(tmp_path, policy_text({}))
    assert read_policy(tmp_path).messages == ()
    with pytest.raises(Exception, match=r"site.toml already exists; edit it, or remove it first"):
        write_policy(tmp_path, "")


def test_what_is_read_before_every_message_loads_nothing_that_is_slow():
    modules = "policy", "update", "audit", "approval", "gate", "writing"
    code = "; ".join(f"import fedcso.federation.sovereignty.{name}" for name in modules)
    code += (
        "; import sys; print([name for name in ('torch', 'numpy', 'pandas', 'flwr', 'yaml') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def secure_request(kind, threshold=3, **changes):
    terms = {} if threshold is None else {"terms": {"threshold": threshold}}
    return Request(kind, SETTINGS | changes, OWN, "FCSG-M", 0, terms)


@pytest.mark.parametrize("kind", OF_TRAINING)
def test_secure_messages_are_allowed_as_training_is_for_sums_over_enough_sites(policy, kind):
    assert refusal(policy, secure_request(kind), TODAY) == ""
    strict = replace(policy, secure_aggregation=SecureRules(required=True, least_sites=3))
    assert refusal(strict, secure_request(kind), TODAY) == ""
    for threshold in (2, None, "3", 3.0, True):
        told = refusal(strict, secure_request(kind, threshold), TODAY)
        assert "is too small: secure_aggregation.least_sites = 3" in told
    without_training = replace(policy, messages=("describe", "evaluate"))
    assert f"message = {kind!r} is not allowed" in refusal(without_training, secure_request(kind), TODAY)
    assert "message = 'secure_other' is not allowed" in refusal(policy, secure_request("secure_other"), TODAY)


def test_single_updates_do_not_leave_where_sums_are_required(policy):
    strict = replace(policy, secure_aggregation=SecureRules(required=True))
    assert "secure_aggregation.required = true" in refused(strict)
    assert refused(strict, "evaluate") == ""
    allowing = replace(policy, options={**policy.options, "secure_aggregation": [True]})
    assert "whose settings say secure_aggregation = true" in refused(allowing, secure_aggregation=True)


def test_a_policy_for_a_federation_with_secure_sums_requires_them(tmp_path):
    write_policy(tmp_path, policy_text(SETTINGS | {"secure_aggregation": True}))
    assert read_policy(tmp_path).secure_aggregation == SecureRules(required=True, least_sites=2)


@pytest.mark.parametrize("table", ["required = 1", "least_sites = 1", "least_sites = 2.5", "sometimes = true"])
def test_secure_rules_that_are_not_understood_allow_nothing(tmp_path, table):
    (tmp_path / "site.toml").write_text(f"[secure_aggregation]\n{table}")
    with pytest.raises(Refused, match="nothing is allowed"):
        read_policy(tmp_path)
