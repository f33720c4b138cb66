"""Parse and build methods: `FCSG-M`, `FCSG-M(momentum=0.5)`, `FedAdam(base=FCSG-M(momentum=0.5))`,
`my_file.py:MyMethod(friction=0.1)`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_origin, get_type_hints

import torch

from fedcso import algorithms
from fedcso.algorithms import ALGORITHMS
from fedcso.codecs import CODECS, SEND_U
from fedcso.core import user_code
from fedcso.core.algorithm import Algorithm, settings
from fedcso.core.codec import Codec, full
from fedcso.core.errors import InvalidValue, UnknownName
from fedcso.core.tree import without
from fedcso.runs.specs import (
    Parse,
    parse_codec,
    parse_several,
    parse_value,
    parse_words,
    require_name,
    spell,
    split_at_commas,
)


class Method(NamedTuple):
    """A method with its settings, and its codec."""

    algorithm: Algorithm
    codec: Codec = full

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by name, also those of a method inside; the codec only if it is not the default."""
        return dict(settings(self.algorithm)) | ({} if self.codec == full else {SEND_U: self.codec})


def hyper_parameters(kind: type[Algorithm]) -> list[str]:
    """Return the names of a method's hyper-parameters."""
    return [field.name for field in fields(kind)]  # type: ignore[arg-type]  # algorithms are dataclasses


@dataclass(frozen=True, repr=False)
class MethodSpec:
    """A parsed method specification: the class, and the settings in brackets.

    A method that wraps another has a setting, `base`, whose value is a specification too. A level is a specification
    or one inside it: settings, whether common or tuned, are for every level that has them.
    """

    text: str
    """The specification as written; results are labelled with it."""
    kind: type[Algorithm]
    settings: Mapping[str, Any]
    usual: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a method inside another's defaults, which common settings replace."""
    root: Path = user_code.HERE
    """The folder to which paths of the user's files are relative."""

    @classmethod
    def parse(cls, text: str, root: Path = user_code.HERE) -> "MethodSpec":
        """Parse `NAME` or `NAME(option=value, …)`; NAME may be `path.py:Name`, relative to `root`, or `module:Name`."""
        require_name("algorithm", text)
        name, bracket, rest = text.strip().partition("(")
        spec = cls(text, _kind(name.strip(), root), {}, root=root)
        if not bracket:
            return spec
        parts = [part.partition("=") for part in split_at_commas(rest.removesuffix(")"))]
        empty = not rest.removesuffix(")").strip()
        if not rest.endswith(")") or not (parts or empty) or not all(key.strip().isidentifier() for key, *_ in parts):
            raise InvalidValue("algorithm", text, "NAME or NAME(option=value, option=value)")
        known = [*hyper_parameters(spec.kind), SEND_U]
        given = {key.strip(): value for key, _, value in parts}
        for option in given:
            if option not in known:
                raise UnknownName(f"option of {name.strip()}", option, known)
        return replace(spec, settings={option: spec._parser(option)(option, value) for option, value in given.items()})

    @classmethod
    def of(cls, algorithm: Algorithm) -> "MethodSpec":
        """Return the specification of a method whose settings are defaults, which common settings replace."""
        kind = type(algorithm)
        name = next((name for name, known in ALGORITHMS.items() if known is kind), kind.__name__)
        return cls(name, kind, {}, dict(vars(algorithm)))

    def __repr__(self) -> str:
        return self.text

    @property
    def name(self) -> str:
        """The name before the bracket."""
        return self.text.partition("(")[0].strip()

    def levels(self, common: Mapping[str, Any]) -> list["MethodSpec"]:
        """Return this specification and those of the methods inside it."""
        return [self, *(level for _, spec, rest, _ in self._inside(common, {}) for level in spec.levels(rest))]

    def hyper_parameters(self, common: Mapping[str, Any]) -> list[str]:
        """Return the names of the hyper-parameters of all levels."""
        return list(dict.fromkeys(name for level in self.levels(common) for name in hyper_parameters(level.kind)))

    def parameters(self, common: Mapping[str, Any]) -> list[str]:
        """The names that can be set: hyper-parameters, and `send_u` if the method shares u."""
        own, shared = self.hyper_parameters(common), _shared(self._build(common, {}))
        return [*own, SEND_U] if any(kind.needs and kind.needs <= shared for kind in CODECS.values()) else own

    def parse_several(self, name: str, text: str, common: Mapping[str, Any] | None = None) -> list[Any]:
        """Parse comma-separated values of a setting."""
        having = [level for level in self.levels(common or {}) if name in hyper_parameters(level.kind)]
        return parse_several(name, text, next(iter(having), self)._parser(name))

    def build(self, common: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> Method:
        """Return the method with its settings.

        `common` settings, as options or a file give them, are for every method that has them; those in brackets come
        before them, and `values` before all.
        """
        algorithm = self._build(common, values or {})
        chosen = {**self.settings, **(values or {})}
        codec = chosen.get(SEND_U, parse_codec(SEND_U, common[SEND_U]) if SEND_U in common else full)
        if codec.needs <= _shared(algorithm):
            return Method(algorithm, codec)
        if SEND_U in chosen:
            raise InvalidValue(SEND_U, spell(codec), f"left out: {self.name} does not share u")
        return Method(algorithm)

    def spell(self, method: Method, common: Mapping[str, Any] | None = None) -> str:
        """Return the specification of a method with these settings."""
        names = {level.kind: level.name for level in self.levels(common or {})}

        def spelled(value: Any, more: dict[str, Any] | None = None) -> str:
            if not isinstance(value, Algorithm):
                return spell(value)
            name = names.get(type(value)) or MethodSpec.of(value).name
            options = ", ".join(f"{key}={spelled(part)}" for key, part in (vars(value) | (more or {})).items())
            return f"{name}({options})"

        return spelled(method.algorithm, {} if method.codec == full else {SEND_U: method.codec})

    def _chosen(self, common: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given hyper-parameters of this level; methods inside are specifications."""
        own = hyper_parameters(self.kind)
        known = {name: self._parser(name)(name, common[name]) for name in own if name in common}
        tuned = {name: values[name] for name in own if name in values}
        found = {**_defaults_inside(self.kind), **self.usual, **known, **without(dict(self.settings), SEND_U), **tuned}
        return {key: MethodSpec.of(value) if isinstance(value, Algorithm) else value for key, value in found.items()}

    def _build(self, common: Mapping[str, Any], values: Mapping[str, Any]) -> Algorithm:
        """Return the method without its codec."""
        inside = {name: spec._build(*rest) for name, spec, *rest in self._inside(common, values)}
        return self.kind(**self._chosen(common, values) | inside)

    def _inside(
        self, common: Mapping[str, Any], values: Mapping[str, Any]
    ) -> Iterator[tuple[str, "MethodSpec", Any, Any]]:
        """Return the methods inside this one, and what is left for them: a common or tuned method is put in once."""
        for name, spec in self._chosen(common, values).items():
            if isinstance(spec, MethodSpec):
                written = name in self.settings and name not in values
                yield name, spec, common if written else without(dict(common), name), without(dict(values), name)

    def _parser(self, name: str) -> Parse:
        """Return the function that parses the values of a setting."""
        if name == SEND_U:
            return parse_codec
        hint = _hint(self.kind, name)
        if isinstance(hint, type) and issubclass(hint, Algorithm):
            return self._parse_inside
        return parse_words if hint is str or get_origin(hint) is Literal else parse_value

    def _parse_inside(self, name: str, given: Any) -> "MethodSpec":
        """Parse a method inside this one."""
        spec = MethodSpec.parse(parse_words(name, given), self.root)
        if SEND_U in spec.settings:
            raise InvalidValue(SEND_U, spell(spec.settings[SEND_U]), f"a setting of {self.name}, not of its {name}")
        return spec


def parse_methods(
    texts: Sequence[str], root: Path = user_code.HERE, known: Mapping[str, MethodSpec] = MappingProxyType({})
) -> tuple[MethodSpec, ...]:
    """Parse several specifications, unless they are `known`; raise if one is given twice."""
    if not (isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts)):
        raise InvalidValue("algorithm", texts, "a name or a list of names (fedcso list algorithms)")
    if not texts:
        raise InvalidValue("algorithm", [], "at least one method (fedcso list algorithms)")
    for number, text in enumerate(texts):
        if text in texts[:number]:
            raise InvalidValue("algorithm", text, "given once: write different settings as NAME(option=value)")
    return tuple(known.get(text) or MethodSpec.parse(text, root) for text in texts)


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
    found = algorithms.owners()
    own = {one.name: one.kind for spec in specs for one in spec.levels({}) if user_code.is_own(one.name)}
    for name, kind in own.items():
        for parameter in hyper_parameters(kind):
            found.setdefault(parameter, []).append(name)
    return dict(sorted(found.items()))


def _kind(name: str, root: Path) -> type[Algorithm]:
    by_lower = {known.lower(): known for known in ALGORITHMS}
    if name.lower() in by_lower:
        return ALGORITHMS[by_lower[name.lower()]]
    if not user_code.is_own(name):
        raise UnknownName("algorithm", name, [*ALGORITHMS, "path.py:Name", "module:Name"])
    found: Any = user_code.load("algorithm", name, root)
    if not (is_dataclass(found) and isinstance(found, type) and issubclass(found, Algorithm)):
        raise InvalidValue("algorithm", name, "a dataclass that is a fedcso.Algorithm")
    kind: type[Algorithm] = found
    return kind


def _hint(kind: type[Algorithm], name: str) -> Any:
    """Return the type of a hyper-parameter, None if it can't be found out."""
    try:
        return get_type_hints(kind).get(name)
    except NameError:  # annotations that only type checkers can read
        return None


def _defaults_inside(kind: type[Algorithm]) -> dict[str, Algorithm]:
    """Return the methods that are defaults of a method's hyper-parameters."""
    defaults = {
        one.name: one.default if one.default_factory is MISSING else one.default_factory()
        for one in fields(kind)  # type: ignore[arg-type]  # algorithms are dataclasses
    }
    return {name: value for name, value in defaults.items() if isinstance(value, Algorithm)}


def _shared(algorithm: Algorithm) -> set[str]:
    """Return the names of what a method shares."""
    return set(algorithm.init(torch.zeros(())).shared)
