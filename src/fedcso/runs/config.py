"""What a run is told: options and YAML files become one flat configuration, and that becomes objects."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser

from fedcso.algorithms import ALGORITHMS
from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import InvalidValue, require, require_count
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.runs import launch
from fedcso.runs.specs import (
    algorithms,
    build,
    hyper_parameters,
    make_task,
    parse_algorithm,
    parse_value,
    settings_of,
    spell,
    task_maker,
)
from fedcso.runs.study import Study, Unit
from fedcso.runs.tracking import require_tracker

Config = dict[str, Any]

PLAN = [field.name for field in fields(Plan)]
HYPER = sorted({name for kind in ALGORITHMS.values() for name in hyper_parameters(kind)})
MAIN = ["FCSG", "FCSG-M", "Acc-FCSG-M"]


def as_list(value: list[str] | str) -> list[str]:
    """A single name in a file counts as a list of one."""
    return [value] if isinstance(value, str) else value


def check(config: Config) -> None:
    """Mistakes that would show later show now, before anything is made."""
    algorithms_of(config)
    plan_of(config)
    require_count("checkpoint_rounds", config["checkpoint_rounds"], least=0)
    require("checkpoint_seconds", config["checkpoint_seconds"], lambda s: s >= 0, "at least 0")
    name = config.get("name", "run")
    require("name", name, lambda n: re.fullmatch(r"[\w.=-]+", n), "made of letters, digits and - _ . =")
    try:
        torch.empty(0, device=config["device"])
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidValue("device", config["device"], f"a torch device that is here ({reason})") from None
    require_tracker(config["track"])
    if "ranks" in config:
        launch.require_over_ranks(config["engine"], config["ranks"])
    if config["command"] != "run" and launch.over_ranks(config["engine"]):
        raise InvalidValue("engine", config["engine"], "another for a sweep, whose runs are many and short")


def plan_of(config: Config) -> Plan:
    """The plan in a configuration."""
    return Plan(**{name: config[name] for name in PLAN if name in config})


def task_of(config: Config) -> Task:
    """The problem and its data."""
    maker = task_maker(config["problem"])
    parser = ArgumentParser()
    known = parser.add_function_arguments(maker)  # knows also the options that a function hands on as **keywords
    return make_task(maker, {name: config[name] for name in known if name in config}, config["problem"])


def algorithms_of(config: Config) -> dict[str, Algorithm]:
    """The methods, by the names they were asked for."""
    common = {name: parse_value(name, config[name]) for name in HYPER if name in config}
    return algorithms(config["algorithm"], common)


def algorithm_of(config: Config, spec: str, values: dict[str, Any]) -> Algorithm:
    """One of the methods, with some of its settings replaced."""
    kind, own = parse_algorithm(spec)
    known = hyper_parameters(kind)
    common = {name: parse_value(name, config[name]) for name in known if name in config}
    return build(kind, common | own | values)


def hyper_of(spec: str) -> list[str]:
    """The names of a method's hyper-parameters."""
    return hyper_parameters(parse_algorithm(spec)[0])


def spec_of(spec: str, algorithm: Algorithm) -> str:
    """A method with all its settings, as it can be asked for."""
    name = spec.partition("(")[0].strip()
    options = ", ".join(f"{key}={spell(value)}" for key, value in settings_of(algorithm).items())
    return f"{name}({options})"


def study_of(config: Config, units: list[Unit], folder: Path) -> Study:
    """Units of work with the configuration's checkpoint rhythm."""
    return Study(units, folder / "checkpoints", config["checkpoint_rounds"], config["checkpoint_seconds"])


def seeds(value: Any, field: str = "seeds") -> list[int]:
    """`3` for the seeds 0, 1, 2; or the seeds themselves: `5,6,7`."""
    try:
        if isinstance(value, str):
            value = (
                [int(part) for part in value.strip("[] ").split(",")] if "," in value or "[" in value else int(value)
            )
        chosen = list(range(value)) if isinstance(value, int) else [int(seed) for seed in value]
    except (TypeError, ValueError):
        chosen = []
    if not chosen or min(chosen) < 0 or len(set(chosen)) < len(chosen):
        raise InvalidValue(field, value, "a number of seeds (3 for 0, 1, 2), or different seeds: 5,6,7")
    return chosen
