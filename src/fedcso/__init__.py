"""fedcso: federated conditional stochastic optimisation, min_x (1/N) Σ_n E_ξ f_ξ( E_{η|ξ} g_η(x, ξ) )."""

from fedcso.algorithms import ALGORITHMS
from fedcso.core.algorithm import Algorithm, State
from fedcso.core.costs import Costs
from fedcso.core.errors import FedcsoError, InvalidValue, NonFinite, UnknownName
from fedcso.core.estimator import Estimator
from fedcso.core.judge import Judge
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem, ascend, per_sample
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.core.version import __version__
from fedcso.engines.job import Job
from fedcso.engines.loop import Progress
from fedcso.engines.snapshot import Snapshot
from fedcso.estimators import ESTIMATORS
from fedcso.estimators.mean_outside import mean_outside
from fedcso.estimators.plain import plain
from fedcso.models import Functional
from fedcso.problems import PROBLEMS
from fedcso.theory.diagnosis import Diagnosis, diagnose

__all__ = [
    "ALGORITHMS",
    "ESTIMATORS",
    "PROBLEMS",
    "Algorithm",
    "Batch",
    "Costs",
    "Diagnosis",
    "Estimator",
    "FedcsoError",
    "Functional",
    "InvalidValue",
    "Job",
    "Judge",
    "NonFinite",
    "Oracle",
    "Plan",
    "Problem",
    "Progress",
    "Snapshot",
    "State",
    "Task",
    "Trace",
    "UnknownName",
    "__version__",
    "ascend",
    "diagnose",
    "mean_outside",
    "per_sample",
    "plain",
    "stream",
]
