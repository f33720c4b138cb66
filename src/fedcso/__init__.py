"""fedcso: federated conditional stochastic optimisation, min_x (1/N) Σ_n E_ξ f_ξ( E_{η|ξ} g_η(x, ξ) ).

The public names are imported when they are first used, so importing the package is fast.
"""

from typing import TYPE_CHECKING

from fedcso.core.late import importer
from fedcso.core.version import __version__

if TYPE_CHECKING:
    from fedcso.algorithms import ALGORITHMS
    from fedcso.checks.checking import check
    from fedcso.checks.finding import Findings
    from fedcso.core.algorithm import Algorithm, Server, State
    from fedcso.core.codec import Codec
    from fedcso.core.costs import Costs
    from fedcso.core.crowd import Crowd
    from fedcso.core.errors import FedcsoError, InvalidValue, NonFinite, UnknownName
    from fedcso.core.estimator import Estimator
    from fedcso.core.judge import Judge
    from fedcso.core.metric import Metric
    from fedcso.core.oracle import Cohort, Oracle
    from fedcso.core.plan import Plan
    from fedcso.core.problem import Batch, Problem, ascend, per_sample
    from fedcso.core.streams import stream
    from fedcso.core.task import Task
    from fedcso.core.trace import Trace
    from fedcso.engines.job import Job
    from fedcso.engines.loop import Progress
    from fedcso.engines.snapshot import Snapshot
    from fedcso.estimators import ESTIMATORS
    from fedcso.estimators.mean_outside import mean_outside
    from fedcso.estimators.plain import plain
    from fedcso.fitting.python import fit
    from fedcso.models import Functional
    from fedcso.problems import PROBLEMS
    from fedcso.runs.adaptation import adapt
    from fedcso.studies.compare import Comparison, compare
    from fedcso.studies.kept import load, resume
    from fedcso.studies.report import report
    from fedcso.studies.results import RunResult, TuningResult
    from fedcso.studies.run import run
    from fedcso.studies.tour import TourResult, tour
    from fedcso.studies.tune import tune
    from fedcso.theory.diagnosis import diagnose
    from fedcso.theory.verdict import Diagnosis

_PLACES = {
    "ALGORITHMS": "fedcso.algorithms",
    "Algorithm": "fedcso.core.algorithm",
    "Batch": "fedcso.core.problem",
    "Codec": "fedcso.core.codec",
    "Cohort": "fedcso.core.oracle",
    "Comparison": "fedcso.studies.compare",
    "Costs": "fedcso.core.costs",
    "Crowd": "fedcso.core.crowd",
    "Diagnosis": "fedcso.theory.verdict",
    "ESTIMATORS": "fedcso.estimators",
    "Estimator": "fedcso.core.estimator",
    "FedcsoError": "fedcso.core.errors",
    "Findings": "fedcso.checks.finding",
    "Functional": "fedcso.models",
    "InvalidValue": "fedcso.core.errors",
    "Job": "fedcso.engines.job",
    "Judge": "fedcso.core.judge",
    "Metric": "fedcso.core.metric",
    "NonFinite": "fedcso.core.errors",
    "Oracle": "fedcso.core.oracle",
    "PROBLEMS": "fedcso.problems",
    "Plan": "fedcso.core.plan",
    "Problem": "fedcso.core.problem",
    "Progress": "fedcso.engines.loop",
    "RunResult": "fedcso.studies.results",
    "Server": "fedcso.core.algorithm",
    "Snapshot": "fedcso.engines.snapshot",
    "State": "fedcso.core.algorithm",
    "Task": "fedcso.core.task",
    "TourResult": "fedcso.studies.tour",
    "Trace": "fedcso.core.trace",
    "TuningResult": "fedcso.studies.results",
    "UnknownName": "fedcso.core.errors",
    "adapt": "fedcso.runs.adaptation",
    "ascend": "fedcso.core.problem",
    "check": "fedcso.checks.checking",
    "compare": "fedcso.studies.compare",
    "diagnose": "fedcso.theory.diagnosis",
    "fit": "fedcso.fitting.python",
    "load": "fedcso.studies.kept",
    "mean_outside": "fedcso.estimators.mean_outside",
    "per_sample": "fedcso.core.problem",
    "plain": "fedcso.estimators.plain",
    "report": "fedcso.studies.report",
    "resume": "fedcso.studies.kept",
    "run": "fedcso.studies.run",
    "stream": "fedcso.core.streams",
    "tour": "fedcso.studies.tour",
    "tune": "fedcso.studies.tune",
}
"""The module of each public name. The imports above say the same to type checkers and editors."""

__all__ = [
    "ALGORITHMS",
    "ESTIMATORS",
    "PROBLEMS",
    "Algorithm",
    "Batch",
    "Codec",
    "Cohort",
    "Comparison",
    "Costs",
    "Crowd",
    "Diagnosis",
    "Estimator",
    "FedcsoError",
    "Findings",
    "Functional",
    "InvalidValue",
    "Job",
    "Judge",
    "Metric",
    "NonFinite",
    "Oracle",
    "Plan",
    "Problem",
    "Progress",
    "RunResult",
    "Server",
    "Snapshot",
    "State",
    "Task",
    "TourResult",
    "Trace",
    "TuningResult",
    "UnknownName",
    "__version__",
    "adapt",
    "ascend",
    "check",
    "compare",
    "diagnose",
    "fit",
    "load",
    "mean_outside",
    "per_sample",
    "plain",
    "report",
    "resume",
    "run",
    "stream",
    "tour",
    "tune",
]

if not TYPE_CHECKING:  # with it, a type checker would accept any name
    __getattr__ = importer(__name__, _PLACES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
