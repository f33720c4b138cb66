"""Checks of problems: a right one passes, and each mistake is found, in one sentence that names what to do."""

import pytest
import torch

from fedcso import Metric, check
from tests.checks import own


def test_a_right_problem_passes_everything():
    findings = check(own.task())
    assert findings.fine
    assert findings.wrong == findings.remarks == []
    assert findings.passed == [outcome.check.name for outcome in findings.outcomes]
    assert {"inner", "mean inside", "gradient", "random numbers", "resume", "engines"} <= set(findings.passed)
    assert str(findings).endswith("Task: nothing is wrong")


def test_built_in_problems_pass():
    assert check("nested_quadratic", clients=3).wrong == []
    assert check("invariant_logistic", clients=3, test_points=20).wrong == []


MISTAKES = {
    "MeanOverXi": ("inner", "inner returns shape (4, 2) for 3 outer and 4 inner samples", "eta.mean(1)"),
    "MeanOverXiKept": ("inner", "depends on m, (1, 4, 2) for m = 4 and (1, 2, 2) for m = 2", "take the mean"),
    "NoMean": ("inner", "depends on m", "take the mean over the inner samples"),
    "Sum": ("mean inside", "is not a mean over the inner samples", "return (1/m) Σ_j g"),
    "Largest": ("mean inside", "is not a mean over the inner samples", "return (1/m) Σ_j g"),
    "ScalarOuter": ("outer", "a single number for 3 outer samples", "return one loss for each ξ"),
    "RepeatedMean": ("each ξ", "outer mixes outer samples", "no mean, sum or normalisation"),
    "OneMore": ("samples", "5 inner samples of each ξ for m = 4", "return exactly m"),
    "OneLess": ("samples", "3 inner samples of each ξ for m = 4", "return exactly m"),
    "WrongLead": ("samples", "sample_outer returns shape (3, 2, 2) for shape = (2, 3)", "must be (2, 3)"),
    "TorchGlobal": ("random numbers", "sample_inner draws from torch's global generator", "pass generator=rng"),
    "NumpyGlobal": ("random numbers", "sample_outer draws from numpy's global generator", "default_rng("),
    "PythonGlobal": ("random numbers", "init draws from Python's module random", "draw with torch"),
    "Unseeded": ("random numbers", "sample_outer returns something else when it is called again", "rng alone"),
    "NoisyInner": ("values", "inner draws from torch's global generator", "draw in sample_inner"),
    "WholeNumbers": ("x_0", "init returns torch.int64", "return real numbers"),
    "NotTensor": ("x_0", "init returns a ndarray", "return tensors"),
    "LogOfZero": ("finite", "not finite", "log of 0"),
    "Detached": ("gradient", "the gradient is 0, but the loss changes", ".detach()"),
    "HalfDetached": ("gradient", "differs from differences of the loss", ".detach()"),
    "WrongFormula": ("closed form", "from automatic differentiation", "correct the formula"),
    "WrongExact": ("exact", "does not belong to its F", "correct one of the two"),
    "Moving": ("projection", "moves a point that is projected already", "nearest point"),
    "FalselyBroadcast": ("engines", "away from one after the other", "leave out broadcasts = True"),
    "Crashing": ("inner", "inner(x (2,), xi (3, 2), eta (3, 4, 2)): RuntimeError", "own.py:"),
}


@pytest.mark.parametrize(("name", "expected"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_found(name, expected):
    findings = check(own.task(getattr(own, name)()))
    check_name, *words = expected
    assert len(findings.wrong) == 1, findings
    assert findings.wrong[0].startswith(f"{check_name}: ")
    assert all(part in findings.wrong[0] for part in words), findings
    assert "\n" not in findings.wrong[0]


class BatchNormed(own.Right):
    """Normalises over the batch, as a network may."""

    def __init__(self):
        self.layer = torch.nn.BatchNorm1d(2, affine=False, track_running_stats=False)

    def outer(self, y, xi):
        return super().outer(self.layer(y) if len(y) > 1 else y, xi)


def test_batch_norm_is_remarked_and_no_mistake():
    findings = check(own.task(BatchNormed()))
    assert findings.wrong == []
    assert any("outer mixes outer samples" in one and "as batch norm does" in one for one in findings.remarks)


class Kinky(own.Right):
    """So many kinks that only tiny steps pass none of them."""

    def outer(self, y, xi):
        return (y * 1e5).sin().abs().sum(-1)


def test_kinks_are_no_mistake_of_the_gradient():
    assert "gradient" in check(own.task(Kinky())).passed


def test_a_problem_that_changes_from_call_to_call_is_found():
    assert any("called again with the same arguments" in one for one in check(own.task(own.Counting())).wrong)


def test_the_global_generators_stay_where_they_were():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    check(own.task(own.TorchGlobal()))
    # The check of random numbers restores them; the other checks call what draws from them here.
    torch.manual_seed(7)
    check(own.task())
    assert torch.equal(torch.get_rng_state(), before)


def test_data_that_differ_whenever_they_are_made_are_found():
    assert any("other data each time it is made" in one for one in check(own.new_data_each_time).wrong)


def test_a_typo_in_select_is_found():
    (wrong,) = check(own.typo_in_select).wrong
    assert wrong.startswith("task: unknown metric to select by 'acuracy'; did you mean accuracy?")


METRICS = {
    "did you mean 'accuracy'?": own.judged(Metric("acuracy", higher_is_better=True)),
    "higher_is_better=False, so the worst model": own.judged(Metric("accuracy", higher_is_better=False)),
    "higher_is_better=True, so the worst model": own.judged(Metric("loss", higher_is_better=True)),
    "is declared as a share": own.judged(Metric("loss", higher_is_better=False, share=True)),
    "is not a single number": own.judged(own.ACCURACY, evaluate=lambda x, data: {"accuracy": x}),
    "returns a float where a dict": own.judged(own.ACCURACY, evaluate=lambda x, data: 0.5),
    "no metric to choose models by": own.task(validation=torch.ones(2), judge=own.Judge(own.evaluate)),
    "evaluate draws from torch's global generator": own.judged(
        own.ACCURACY, evaluate=lambda x, data: {"accuracy": torch.rand(())}
    ),
}


@pytest.mark.parametrize(("words", "task"), METRICS.items(), ids=METRICS)
def test_mistakes_in_metrics_are_found(words, task):
    (wrong,) = check(task).wrong
    assert wrong.startswith("metrics: ")
    assert words in wrong


def test_right_metrics_pass_and_undeclared_ones_are_remarked():
    findings = check(own.judged(own.ACCURACY))
    assert findings.fine
    assert "metrics" in findings.passed
    assert findings.remarks == [
        "metrics: loss can't choose models, because evaluate returns it undeclared: add a Metric"
    ]


def test_checks_that_need_one_that_failed_are_skipped():
    findings = check(own.task(own.OneMore()))
    assert "gradient" not in findings.passed
    skipped = next(line for line in str(findings).splitlines() if line.startswith("skipped"))
    assert "gradient" in skipped
    assert "correct “samples” first" in skipped
