"""Parse and build methods: `FCSG-M`, `FCSG-M(momentum=0.5)`, `my_file.py:MyMethod(friction=0.1)`."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_origin, get_type_hints

import torch

from fedcso.algorithms import ALGORITHMS
from fedcso.codecs import CODECS
from fedcso.core import user_code
from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.errors import InvalidValue, UnknownName
from fedcso.core.tree import without
from fedcso.runs.specs import Parse, is_own, parse_codec, parse_several, parse_value, parse_words, spell

SEND_U = "send_u"
"""The setting that selects a codec for u."""


class Method(NamedTuple):
    """A method with its settings, and its codec."""

    algorithm: Algorithm
    codec: Codec = full

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by name; the codec only if it is not the default."""
        return dict(vars(self.algorithm)) | ({} if self.codec == full else {SEND_U: self.codec})


def hyper_parameters(kind: type[Algorithm]) -> list[str]:
    """Return the names of a method's hyper-parameters."""
    return [field.name for field in fields(kind)]  # type: ignore[arg-type]  # algorithms are dataclasses


@dataclass(frozen=True)
class MethodSpec:
    """A parsed method specification: the class, and the settings in brackets."""

    text: str
    """The specification as written; results are labelled with it."""
    kind: type[Algorithm]
    settings: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str, root: Path = user_code.HERE) -> "MethodSpec":
        """Parse `NAME` or `NAME(option=value, …)`; NAME may be `path.py:Name`, relative to `root`, or `module:Name`."""
        name, bracket, rest = text.partition("(")
        kind = _kind(name.strip(), root)
        if not bracket:
            return cls(text, kind, {})
        source = f"f({rest}"
        try:
            call = ast.parse(source, mode="eval").body
        except SyntaxError:
            call = None
        if not isinstance(call, ast.Call) or call.args or any(keyword.arg is None for keyword in call.keywords):
            raise InvalidValue("algorithm", text, "NAME or NAME(option=value, option=value)")
        given = {str(keyword.arg): ast.get_source_segment(source, keyword.value) for keyword in call.keywords}
        known = [*hyper_parameters(kind), SEND_U]
        for option in given:
            if option not in known:
                raise UnknownName(f"option of {name.strip()}", option, known)
        return cls(text, kind, {option: _parser(kind, option)(option, value) for option, value in given.items()})

    @property
    def name(self) -> str:
        """The name before the bracket."""
        return self.text.partition("(")[0].strip()

    def parameters(self, common: Mapping[str, Any]) -> list[str]:
        """The names that can be set: hyper-parameters, and `send_u` if the method shares u."""
        own = hyper_parameters(self.kind)
        shared = _shared(self.kind(**self._settings(common)))
        return [*own, SEND_U] if any(kind.needs and kind.needs <= shared for kind in CODECS.values()) else own

    def parse_several(self, name: str, text: str) -> list[Any]:
        """Parse comma-separated values of a setting."""
        return parse_several(name, text, _parser(self.kind, name))

    def build(self, common: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> Method:
        """Return the method with its settings.

        `common` settings, as options or a file give them, are for every method that has them; those in brackets come
        before them, and `values` before all.
        """
        chosen = {**self.settings, **(values or {})}
        algorithm = self.kind(**without(self._settings(common) | chosen, SEND_U))
        codec = chosen.get(SEND_U, parse_codec(SEND_U, common[SEND_U]) if SEND_U in common else full)
        if codec.needs <= _shared(algorithm):
            return Method(algorithm, codec)
        if SEND_U in chosen:
            raise InvalidValue(SEND_U, spell(codec), f"left out: {self.name} does not share u")
        return Method(algorithm)

    def spell(self, method: Method) -> str:
        """Return the specification of a method with these settings."""
        options = ", ".join(f"{key}={spell(value)}" for key, value in method.settings.items())
        return f"{self.name}({options})"

    def _settings(self, common: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given hyper-parameters."""
        names = hyper_parameters(self.kind)
        known = {name: _parser(self.kind, name)(name, common[name]) for name in names if name in common}
        return known | without(dict(self.settings), SEND_U)


def parse_methods(texts: Sequence[str], root: Path = user_code.HERE) -> tuple[MethodSpec, ...]:
    """Parse several specifications; raise if one is given twice."""
    if not texts:
        raise InvalidValue("algorithm", [], "at least one method (fedcso list algorithms)")
    for number, text in enumerate(texts):
        if text in texts[:number]:
            raise InvalidValue("algorithm", text, "given once: write different settings as NAME(option=value)")
    return tuple(MethodSpec.parse(text, root) for text in texts)


def build_all(specs: Iterable[MethodSpec], common: Mapping[str, Any]) -> dict[str, Method]:
    """Build the methods, by specification; raise if no method has one of the `common` settings."""
    specs = tuple(specs)
    built = {spec.text: spec.build(common) for spec in specs}
    for name in common:
        if not any(name in spec.parameters(common) for spec in specs):
            raise InvalidValue(name, common[name], f"left out: none of {', '.join(built)} has it")
    return built


def owners(specs: Iterable[MethodSpec]) -> dict[str, list[str]]:
    """Return, for each hyper-parameter, the built-in and given methods that have it."""
    kinds = dict(ALGORITHMS) | {spec.name: spec.kind for spec in specs if is_own(spec.name)}
    found: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        for parameter in hyper_parameters(kind):
            found.setdefault(parameter, []).append(name)
    return dict(sorted(found.items()))


def _kind(name: str, root: Path) -> type[Algorithm]:
    by_lower = {known.lower(): known for known in ALGORITHMS}
    if name.lower() in by_lower:
        return ALGORITHMS[by_lower[name.lower()]]
    if not is_own(name):
        raise UnknownName("algorithm", name, [*ALGORITHMS, "path.py:Name", "module:Name"])
    found: Any = user_code.load("algorithm", name, root)
    if not (is_dataclass(found) and isinstance(found, type) and issubclass(found, Algorithm)):
        raise InvalidValue("algorithm", name, "a dataclass that is a fedcso.Algorithm")
    kind: type[Algorithm] = found
    return kind


def _parser(kind: type[Algorithm], name: str) -> Parse:
    """Return the function that parses the values of a setting."""
    if name == SEND_U:
        return parse_codec
    try:
        hint = get_type_hints(kind).get(name)
    except NameError:  # annotations that only type checkers can read
        hint = None
    return parse_words if hint is str or get_origin(hint) is Literal else parse_value


def _shared(algorithm: Algorithm) -> set[str]:
    """Return the names of what a method shares."""
    return set(algorithm.init(torch.zeros(())).shared)
