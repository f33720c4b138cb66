"""fedcso: federated conditional stochastic optimisation, min_x (1/N) Σ_n E_ξ f_ξ( E_{η|ξ} g_η(x, ξ) )."""

__version__ = "0.1.0"

from fedcso.algorithm import Algorithm, State
from fedcso.algorithms import ALGORITHMS
from fedcso.costs import Costs
from fedcso.diagnosis import Diagnosis, diagnose
from fedcso.engine import Job, Progress, Snapshot
from fedcso.errors import FedcsoError, InvalidValue, NonFinite, UnknownName
from fedcso.estimator import Estimator, Oracle, mean_outside, plain
from fedcso.estimators import ESTIMATORS
from fedcso.models import Functional
from fedcso.plan import Plan
from fedcso.problem import Batch, Problem, ascend, per_sample
from fedcso.problems import PROBLEMS
from fedcso.streams import stream
from fedcso.task import Task
from fedcso.trace import Trace

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
    "ascend",
    "diagnose",
    "mean_outside",
    "per_sample",
    "plain",
    "stream",
]
