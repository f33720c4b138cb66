"""What a run is told: options and YAML files become one flat configuration, and that becomes objects."""

import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser

from fedcso.algorithms import ALGORITHMS
from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.errors import InvalidValue, require, require_count
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.tree import without
from fedcso.runs import launch
from fedcso.runs.specs import (
    SEND_U,
    Method,
    hyper_parameters,
    make_task,
    methods,
    parse_algorithm,
    parse_value,
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
    methods_of(config)
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


def methods_of(config: Config) -> dict[str, Method]:
    """The methods, by the names they were asked for."""
    return methods(config["algorithm"], _common(config, [*HYPER, SEND_U]))


def algorithm_of(config: Config, spec: str, values: dict[str, Any]) -> Algorithm:
    """One of the methods, with some of its settings replaced."""
    kind, own = parse_algorithm(spec)
    known = hyper_parameters(kind)
    return kind(**_common(config, known) | without(own, SEND_U) | values)


def _common(config: Config, names: Iterable[str]) -> dict[str, Any]:
    return {name: parse_value(name, config[name]) for name in names if name in config}


def hyper_of(spec: str) -> list[str]:
    """The names of a method's hyper-parameters."""
    return hyper_parameters(parse_algorithm(spec)[0])


def spec_of(spec: str, algorithm: Algorithm, codec: Codec = full) -> str:
    """A method with all its settings, as it can be asked for."""
    settings = vars(algorithm) | ({} if codec == full else {SEND_U: codec})
    options = ", ".join(f"{key}={spell(value)}" for key, value in settings.items())
    return f"{spec.partition('(')[0].strip()}({options})"


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
