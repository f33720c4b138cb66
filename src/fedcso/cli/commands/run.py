"""Run one or several methods on one problem, for several seeds; figures and tables come by themselves.

examples:
  fedcso run invariant_logistic
  fedcso run invariant_logistic --algorithm FCSG FCSG-M --noise 2 --inner-batch 100 --seeds 5
  fedcso run invariant_logistic --algorithm 'FCSG-M(momentum=0.5)' 'FCSG-M(momentum=0.1)' --rounds 50
  fedcso run nested_quadratic --algorithm SCAFFOLD --learning-rate 'cosine(0.1, 5000)'
  fedcso run examples/own_problem.py:task --rounds 20     your own problem (or module:name)
  fedcso run --config runs/…/config.yaml --seeds 10       an earlier run again, with changes
  fedcso run invariant_logistic --print-config            the complete configuration, to edit
  fedcso run classification --engine distributed --ranks 2    several processes, on one host or many
"""

import json
import signal
from pathlib import Path

from fedcso.cli.options import read_options
from fedcso.core.errors import FedcsoError
from fedcso.core.task import Task
from fedcso.engines import ranks
from fedcso.engines.job import Job
from fedcso.estimators import ESTIMATORS
from fedcso.reports import outputs
from fedcso.reports.terminal import conclude
from fedcso.runs import launch
from fedcso.runs.config import Config, methods_of, plan_of, study_of, task_of
from fedcso.runs.execute import execute_study, same_data
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Unit

HELP = "one or several methods on one problem, for several seeds"


def main(arguments: list[str]) -> int:
    """A new run."""
    config = read_options("run", str(__doc__), arguments)
    task = task_of(config)
    _units(config, task)  # mistakes show before a folder is made
    name = config.get("name") or Path(config["problem"].partition(":")[0]).stem
    for note in task.notes:
        print(f"note    {note}")
    folder = RunFolder.create(
        Path(config["out"]), name, config, {"digest": task.digest(), "clients": len(task.clients)}
    )
    if launch.needed(config["engine"]):
        return launch.on_this_host(folder, config.get("ranks"), ["run", *arguments])
    return _carry_out(folder, task)


def resume(folder: RunFolder, processes: int | None = None) -> int:
    """Carry out what is left of a run, where it has ranks by another number of them."""
    config = folder.config()
    if processes is not None:
        launch.require_over_ranks(config["engine"], processes)
    if launch.needed(config["engine"]):
        return launch.on_this_host(folder, processes or config.get("ranks"), ["resume", str(folder.path)])
    return _carry_out(folder, same_data(folder, task_of(config)))


def follow() -> int:
    """On a rank that does not lead: do what the first one says, with the same settings and the same data."""
    config, digest = json.loads(ranks.hear())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the leader sees them, and says when to stop
    task = task_of(config)
    if task.digest() != digest:
        raise FedcsoError(f"rank {ranks.rank()} has other data than the first (digest {task.digest()}, not {digest})")
    study_of(config, _units(config, task), Path()).follow()
    return 0


def _carry_out(folder: RunFolder, task: Task) -> int:
    config = folder.config()
    launch.require_ranks(config["engine"])
    study = study_of(config, _units(config, task), folder.path)
    seeds = config["seeds"]

    def on_checkpoint() -> None:
        outputs.write_metrics(folder, study.collect(), seeds, task)

    ranks.tell(json.dumps([config, task.digest()]))
    found = execute_study(folder, study, config["track"], on_checkpoint)
    table = outputs.write_all(folder, found, seeds, task)
    return conclude(folder, table, found)


def _units(config: Config, task: Task) -> list[Unit]:
    plan, estimator = plan_of(config), ESTIMATORS[config["estimator"]]
    units = []
    for name, (algorithm, codec) in methods_of(config).items():
        Job(algorithm, task, plan, estimator=estimator, codec=codec)  # refuses what does not go together
        units.append(
            Unit(
                name,
                task,
                plan,
                [algorithm],
                config["seeds"],
                estimator=estimator,
                engine=config["engine"],
                device=config["device"],
                codec=codec,
            )
        )
    return units
