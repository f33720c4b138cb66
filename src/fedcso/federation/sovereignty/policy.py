"""A site's policy: what the site allows, read from `site.toml` in its folder before every message.

All is refused that the policy does not allow: a setting that it does not name, a policy that is missing, expired or
can't be read, a key that is not known. `refusal` is a function of (policy, request, date) alone.
"""

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName, is_number
from fedcso.federation.sovereignty.secure_rules import SecureRules
from fedcso.federation.sovereignty.update import Update

FILE = "site.toml"
ANY = "any"
REFUSED = "refused by policy"
"""All that the coordinator is told."""

MESSAGES = ("describe", "train", "evaluate", "count")
"""The kinds of messages: describe the data, train, measure a model, count rows by score."""

OF_TRAINING = ("secure_keys", "secure_shares", "secure_update", "secure_confirm", "secure_reveal")
"""The messages of secure aggregation, which are answered if `train` is: an update leaves in a sum only."""

LIMITED = ("problem", "algorithm", "rounds", "local_steps", "data", "columns")
"""Settings that keys of the policy limit; all others must be named in its table of options."""


TABLES: dict[str, type] = {"update": Update, "secure_aggregation": SecureRules}
"""The tables of a policy that have keys of their own."""


class Refused(FedcsoError):
    """The site's policy does not allow a request; the message is for the site's own log."""


class Request(NamedTuple):
    """What the coordinator asks of a site."""

    kind: str
    """One of `MESSAGES` or `OF_TRAINING`."""
    settings: Mapping[str, Any]
    """The settings of the run."""
    own: Mapping[str, str]
    """The site's settings for its own table."""
    algorithm: str = ""
    """The method to train with, or empty."""
    round: int = -1
    secure: Mapping[str, Any] = {}
    """What a message of secure aggregation says."""


@dataclass(frozen=True)
class Policy:
    """What a site allows; the default allows nothing."""

    expires: date = date.min
    """The last day on which the policy allows anything."""
    smallest_count: int = 10
    """No smaller number of rows leaves the site in any description, except 0."""
    messages: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    """Methods: a name allows all settings of the method; a method around another must be written in full."""
    max_rounds: int = 0
    max_local_steps: int = 0
    min_samples: int = 10
    """The fewest samples behind an update: local_steps times outer_batch."""
    tables: tuple[str, ...] = ()
    """The tables that may be read: paths, or names of built-in data."""
    columns: tuple[str, ...] | str = ()
    """The columns of the site's table to learn from, or "any"."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The other settings of a run: "any", a list of allowed values, or {least = …, most = …}."""
    update: Update = Update()  # noqa: RUF009 - frozen
    secure_aggregation: SecureRules = SecureRules()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        for name in ("smallest_count", "max_rounds", "max_local_steps", "min_samples"):
            _require(name, getattr(self, name), _is_count, "a whole number, at least 0")
        for name in ("messages", "problems", "algorithms", "tables"):
            _require(name, getattr(self, name), _are_texts, "a list of texts")
        _require("messages", self.messages, lambda some: set(some) <= set(MESSAGES), f"some of {list(MESSAGES)}")
        _require("columns", self.columns, lambda some: some == ANY or _are_texts(some), 'a list of texts, or "any"')
        is_day = isinstance(self.expires, date) and not isinstance(self.expires, datetime)
        _require("expires", self.expires, lambda _: is_day, "a date without quotes, as in 2027-01-31")
        _require("options", self.options, lambda some: isinstance(some, Mapping), "a table of settings")
        for name, allowed in self.options.items():
            _require(f"options.{name}", allowed, _is_rule, '"any", a list of values, or { least = …, most = … }')


def read_policy(folder: Path) -> Policy:
    """Read a site's policy; raise `Refused` if there is none, or if anything in it is not understood."""
    path = folder / FILE
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
        return _parse(written)
    except FileNotFoundError:
        raise Refused(
            f"there is no policy {path}; write one with: fedcso flower site --init --folder {folder}"
        ) from None
    except (OSError, ValueError, TypeError, RecursionError, FedcsoError) as error:  # also what is not TOML, or not text
        raise Refused(f"the policy {path} can't be used, so nothing is allowed: {error}") from error


def _parse(written: dict[str, Any]) -> Policy:
    _require_known("key", written, Policy)
    tables = {name: _table(name, kind, written) for name, kind in TABLES.items() if name in written}
    lists = {name: tuple(value) for name, value in written.items() if isinstance(value, list)}
    return Policy(**(written | lists | tables))


def _table(name: str, kind: type, written: Mapping[str, Any]) -> Any:
    _require(name, written[name], lambda table: isinstance(table, dict), "a table")
    _require_known(f"key of [{name}]", written[name], kind)
    return kind(**written[name])


def refusal(policy: Policy, request: Request, today: date) -> str:
    """Return why a policy does not allow a request, or an empty text if it does."""
    return next(_reasons(policy, request, today), "")


def _reasons(policy: Policy, request: Request, today: date) -> Iterator[str]:
    settings = {name: value for name, value in request.settings.items() if value is not None}
    if today > policy.expires:
        yield f"the policy expired on {policy.expires}: set a later date in expires"
    allowed_by = "train" if request.kind in OF_TRAINING else request.kind
    if allowed_by not in policy.messages:
        yield _not_in("message", request.kind, "messages", policy.messages)
    yield from _insecure(policy, request)
    if settings.get("problem") not in policy.problems:
        yield _not_in("problem", settings.get("problem"), "problems", policy.problems)
    methods = settings.get("algorithm")
    for method in [*(methods if isinstance(methods, list) else [methods]), *filter(None, [request.algorithm])]:
        if not _allows_method(policy, method):
            yield _not_in("algorithm", method, "algorithms", policy.algorithms)
    yield from _too_long(policy, request.round, settings)
    table = request.own.get("data", settings.get("data"))
    if table is not None and not _allows_table(policy, table):
        yield _not_in("data", table, "tables", policy.tables)
    if strange := [name for name in _columns(request) if policy.columns != ANY and name not in policy.columns]:
        yield _not_in("columns", ", ".join(strange), "columns", policy.columns)
    for name, value in settings.items():
        if name not in LIMITED and name not in request.own and not _fits(value, policy.options.get(name, [])):
            known = f"must be {policy.options[name]}" if name in policy.options else "is not named"
            yield f"{name} = {value!r} is not allowed: it {known} in [options]"


def _insecure(policy: Policy, request: Request) -> Iterator[str]:
    """Yield why an update would leave alone, or in a sum over too few sites."""
    rules, terms = policy.secure_aggregation, request.secure.get("terms")
    if request.kind == "train" and rules.required:
        yield "a single update was asked for, but secure_aggregation.required = true"
    if request.kind == "train" and request.settings.get("secure_aggregation"):
        yield "a single update was asked for in a run whose settings say secure_aggregation = true"
    if request.kind in OF_TRAINING:
        threshold = terms.get("threshold") if isinstance(terms, Mapping) else None
        if not (isinstance(threshold, int) and _is_count(threshold) and threshold >= rules.least_sites):
            yield f"a sum over {threshold!r} sites is too small: secure_aggregation.least_sites = {rules.least_sites}"


def _too_long(policy: Policy, round: int, settings: Mapping[str, Any]) -> Iterator[str]:
    for name in ("rounds", "local_steps", "outer_batch"):
        if not _is_count(settings.get(name)):
            yield f"{name} = {settings.get(name)!r} is not a whole number"
            return
    if max(settings["rounds"], round + 1) > policy.max_rounds:
        yield f"rounds = {max(settings['rounds'], round + 1)} is more than max_rounds = {policy.max_rounds}"
    if settings["local_steps"] > policy.max_local_steps:
        yield f"local_steps = {settings['local_steps']} is more than max_local_steps = {policy.max_local_steps}"
    samples = settings["local_steps"] * settings["outer_batch"]
    if samples < policy.min_samples:
        yield f"local_steps times outer_batch = {samples} is less than min_samples = {policy.min_samples}"


def columns_to_use(policy: Policy, request: Request) -> str:
    """Return the columns to learn from, separated by commas: those asked for, or all that the policy allows."""
    asked = _columns(request)
    chosen = asked if asked or policy.columns == ANY else policy.columns
    return ",".join(f'"{name}"' if "," in name else name for name in chosen)


def _columns(request: Request) -> list[str]:
    """Return the columns that are asked for; none stands for all."""
    written = request.own.get("columns") or request.settings.get("columns") or ""
    if not isinstance(written, str):
        return [str(name) for name in written] if isinstance(written, list) else [str(written)]
    names = next(csv.reader([written], skipinitialspace=True), [])
    return [name.strip() for name in names if name.strip()]


def _allows_method(policy: Policy, method: Any) -> bool:
    """Return whether a method is allowed, as it is written or by its name; one that has another inside by no name."""
    name, _, inside = str(method).partition("(")
    return method in policy.algorithms or (name.strip() in policy.algorithms and "base" not in inside)


def _allows_table(policy: Policy, table: Any) -> bool:
    paths = {Path(allowed).resolve() for allowed in policy.tables}
    return table in policy.tables or (isinstance(table, str) and Path(table).resolve() in paths)


def _fits(value: Any, allowed: Any) -> bool:
    if allowed == ANY:
        return True
    if isinstance(allowed, Mapping):
        return is_number(value) and allowed.get("least", value) <= value <= allowed.get("most", value)
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed)


def _is_rule(allowed: Any) -> bool:
    if isinstance(allowed, dict):
        return set(allowed) <= {"least", "most"} and bool(allowed) and all(map(is_number, allowed.values()))
    return allowed == ANY or isinstance(allowed, list)


def _not_in(what: str, value: Any, key: str, allowed: Any) -> str:
    return f"{what} = {value!r} is not allowed: it is not in {key} = {list(allowed)}"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, str) for one in value)


def _require(name: str, value: Any, holds: Any, allowed: str) -> None:
    if not holds(value):
        raise InvalidValue(name, value, allowed)


def _require_known(kind: str, written: Mapping[str, Any], of: type) -> None:
    known = [one.name for one in fields(of)]
    for name in written:
        if name not in known:
            raise UnknownName(kind, name, known)
