"""What a command line is about: the problem and the methods that it names, on which its options depend."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from fedcso import algorithms
from fedcso.algorithms import ALGORITHMS
from fedcso.core.definition import Imported
from fedcso.core.errors import FedcsoError
from fedcso.core.recommended import Recommended, recommended
from fedcso.runs.folder import read_yaml
from fedcso.runs.parser import join_repeated, use_underscores

if TYPE_CHECKING:  # importing these imports torch, which help without a problem does not need
    from fedcso.runs.config import Flat
    from fedcso.runs.given import Given
    from fedcso.runs.specs import TaskMaker


class Subject(NamedTuple):
    """What a command line is about, on which its options depend."""

    methods: Sequence[str]
    """The methods to run, as they are written."""
    owners: Mapping[str, Sequence[str]]
    """The methods that have a hyper-parameter, by its name."""
    problem: str | None = None
    maker: "TaskMaker | None" = None
    """The function that makes the problem's task, whose arguments are options too."""
    recommended: Recommended = Recommended()
    usable: Collection[str] = ()
    """The hyper-parameters of the methods to run."""
    defaults: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """For each method to run, its hyper-parameters with the defaults as they are written."""


def subject_without_problem(methods: Sequence[str]) -> Subject:
    """Return what general help is about: the methods, read from the source without importing them."""
    definitions = {name: ALGORITHMS.definition(name) for name in methods}
    usable = {parameter for one in definitions.values() for parameter in one.fields}
    defaults = {name: one.defaults for name, one in definitions.items()}
    return Subject(methods, algorithms.owners(), usable=usable, defaults=defaults)


def find_subject(command: str, arguments: list[str], usual: Sequence[str]) -> Subject:
    """Return the problem and the methods that a command line or its file names."""
    options = join_repeated(use_underscores(arguments))
    file, content = _config_file(options)
    texts = next((json.loads(value) for option, value in pairwise(options) if option == "--algorithm"), None)
    texts = texts or _methods_in(content)
    problem = arguments[0] if arguments and not arguments[0].startswith("-") else _problem_in(command, file, content)
    from fedcso.runs.given import NOTHING

    return describe_subject(problem, texts, usual, NOTHING)


def describe_subject(problem: str, texts: Sequence[str], usual: Sequence[str], objects: "Given") -> Subject:
    """Return what is known of a problem and of the methods that are named, or else recommended or usual."""
    from fedcso.runs.methods import owners

    named = objects.parse_methods(texts) if texts else ()
    maker = objects.maker(problem)
    advice = recommended(maker)
    specs = named or objects.parse_methods(advice.methods or usual)
    usable = {name for spec in specs for name in spec.hyper_parameters({})}
    defaults = {spec.text: Imported(spec.kind).defaults | dict(_spelled(spec.settings)) for spec in specs}
    return Subject([spec.text for spec in specs], owners(specs), problem, maker, advice, usable, defaults)


def _spelled(settings: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Return the settings in the brackets of a method that are numbers or words, as text."""
    return ((name, repr(value)) for name, value in settings.items() if isinstance(value, int | float | str))


def _problem_in(command: str, file: Path | None, content: "Flat") -> str:
    """Return the problem that a file names."""
    if file is None:
        raise FedcsoError(
            f"the problem is missing: name it first, as in `fedcso {command} invariant_logistic` (see: fedcso list)"
        )
    if not isinstance(content.get("problem"), str):
        raise FedcsoError(f"config: {file} does not name a problem; add a line `problem: NAME`")
    return str(content["problem"])


def _methods_in(content: "Flat") -> Sequence[str]:
    """Return the methods that a file names; none if they can't be read, which the parser reports later."""
    texts = content.get("algorithm")
    texts = [texts] if isinstance(texts, str) else texts
    return texts if texts and isinstance(texts, list) and all(isinstance(text, str) for text in texts) else ()


def _config_file(options: list[str]) -> tuple[Path | None, "Flat"]:
    """Return the first configuration file among the options, and its content."""
    for place, option in enumerate(options):
        name, _, value = option.partition("=")
        if name == "--config":
            value = value or "".join(options[place + 1 : place + 2])
            if not value:
                raise FedcsoError("--config is given without a value: name a YAML file")
            return Path(value), read_yaml(Path(value), "config")
    return None, {}
