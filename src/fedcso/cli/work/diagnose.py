"""Measure bias and noise at the starting point of a problem, or at the models of a run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from fedcso.core.errors import FedcsoError, InvalidValue, require_positive
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.core.recommended import recommended
from fedcso.core.streams import START, stream
from fedcso.core.task import Task
from fedcso.core.tree import Tree, named_leaves, unflatten_like
from fedcso.reports.terminal import show
from fedcso.runs.config import RunConfig, option_names
from fedcso.runs.execute import same_data
from fedcso.runs.folder import RunFolder
from fedcso.runs.options import add_problem_options
from fedcso.runs.parser import Parser
from fedcso.runs.specs import make_task, task_maker
from fedcso.studies.folders import open_run
from fedcso.theory.diagnosis import diagnose
from fedcso.theory.verdict import Diagnosis, percent


def measure(parser: Parser, where: str, arguments: list[str]) -> None:
    """Print a table and advice for every model; the parser has the options that do not depend on the problem."""
    if Path(where).is_dir():
        options = parser.parse_args(arguments)
        task, plan, models = _from_run(open_run(where))
    else:
        options, task, plan = _from_problem(parser, where, arguments)
        models = iter([("x_0", task.starting_point(stream(options.seed, START, 0)))])
    if options.target is not None:
        require_positive("target", options.target)
    clients = [data for data in task.seen if task.problem.trains(data)]
    averaged = len(plan.participants(0, 0, len(task.able))) * plan.outer_batch * plan.local_steps
    for name, x in models:
        found = diagnose(
            task.problem,
            x,
            clients,
            _parse_sizes(options.sizes),
            samples=options.samples,
            averaged=averaged,
            weights=[plan.weight(task.problem, data) for data in clients],
            seed=options.seed,
        )
        show(_table(found), title=f"{name}: N·b·q = {averaged} estimates in a round")
        each = [f"m = {size.m}: {found.verdict(size)}" for size in found.sizes]
        print("\n".join(each + found.advice(options.target)) + "\n")


def _parse_sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValue("sizes", text, "whole numbers separated by commas, as in 1,10,100") from None


def _from_problem(parser: Parser, problem: str, arguments: list[str]) -> tuple[Any, Task, Plan]:
    """Return the options, the task of a problem, and a plan with the sizes on which the noise of a round depends."""
    maker = task_maker(problem)
    parser.prog = f"fedcso diagnose {problem}"
    usual = Plan(**recommended(maker).plan)
    group = parser.add_argument_group("sizes of a round")
    group.add_argument("--local_steps", type=int, default=usual.local_steps, help="q, the steps of a client in a round")
    group.add_argument("--outer_batch", type=int, default=usual.outer_batch, help="b, outer samples per step")
    add_problem_options(parser, maker, problem)
    options = parser.parse_args(arguments)
    values = options.as_dict()
    names = option_names(problem)
    task = make_task(maker, {name: value for name, value in values.items() if name in names}, problem)
    return options, task, Plan(local_steps=options.local_steps, outer_batch=options.outer_batch)


def _from_run(folder: RunFolder) -> tuple[Task, Plan, Iterator[tuple[str, Tree]]]:
    """Return the task and the plan of a run, and the last model of each method for its first seed."""
    path = folder.path / "model-final.safetensors"
    if not path.is_file():
        raise FedcsoError(f"{folder.path} has no models yet; go on with: fedcso resume {folder.path}")
    config = RunConfig.of(folder)
    task = same_data(folder, config.task())
    return task, config.plan.for_task(task), _models(path, task.problem)


def _models(path: Path, problem: Problem) -> Iterator[tuple[str, Tree]]:
    tensors = load_file(path)
    like = problem.init(stream(0, START, 0))
    names = [leaf or "x" for leaf, _ in named_leaves(like)]
    seen = set()
    for key in tensors:
        method, seed, _ = key.rsplit("/", 2)
        if method not in seen:
            seen.add(method)
            yield (
                f"{method}, seed {seed}",
                unflatten_like(like, (tensors[f"{method}/{seed}/{leaf}"] for leaf in names)),
            )


def _table(found: Diagnosis) -> list[dict[str, Any]]:
    return [
        {
            "m": size.m,
            "bias": str(size.bias),
            "share of ‖∇F‖": percent(found.share(size).value),
            "noise of one estimate": str(size.noise),
            "noise of a round": f"{found.noise(size):.3g}",
            "": str(found.judge(size)),
        }
        for size in found.sizes
    ]
