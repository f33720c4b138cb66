"""Outcomes: what an experiment needs to know about finished runs, in small JSON files without models.

    outcomes/<unit>/<part>.json        rows, costs, failure, and what the experiment measured on the finished run

A long experiment can go on from the outcomes of an earlier one, on another machine too: runs whose outcome is there are
not run again (`fedcso reproduce table2 --from FOLDER`). An outcome counts only for the settings that it was made with.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any

from fedcso.core import atomic
from fedcso.core.costs import Costs
from fedcso.core.errors import FedcsoError
from fedcso.core.trace import Trace
from fedcso.runs.study import Part, as_file_name

log = logging.getLogger("fedcso")

FOLDER = "outcomes"
"""The subfolder of a run folder in which outcomes are saved."""

Measure = Callable[[Part, Trace], dict[str, float]]
"""Measures what an experiment needs of a finished run besides its rows and costs."""


def measure_nothing(part: Part, trace: Trace) -> dict[str, float]:
    """Return nothing, for experiments that need only rows and costs."""
    return {}


@dataclass(frozen=True)
class Outcomes:
    """The outcomes in a folder."""

    folder: Path

    def recall(self, part: Part) -> list[Trace] | None:
        """Return the traces of a finished part, without models; None if there is no outcome with its settings."""
        path = self._path(part)
        if not path.is_file():
            return None
        saved = read_outcome(path)
        if not _has_settings(part, saved["settings"]):
            log.warning("%s was made with other settings, so %s is run again", path, part.title)
            return None
        return [_as_trace(one) for one in saved["traces"]]

    def save(self, part: Part, traces: Sequence[Trace]) -> None:
        """Save the outcome of a finished part."""
        path = self._path(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"settings": _settings(part), "traces": [_as_values(trace) for trace in traces]}
        atomic.write(path, json.dumps(content, indent=1))

    def files(self) -> dict[str, bytes]:
        """Return all outcomes as files of a run folder; raise if there are none or if one can't be read."""
        paths = sorted(self.folder.glob("*/*.json"))
        if not paths:
            raise FedcsoError(f"{self.folder} has no outcomes: name the folder of an experiment that has finished runs")
        for path in paths:
            read_outcome(path)
        return {f"{FOLDER}/{path.relative_to(self.folder)}": path.read_bytes() for path in paths}

    def _path(self, part: Part) -> Path:
        return self.folder / as_file_name(part.unit.name) / f"{part.folder}.json"


def outcomes_of(run: Path) -> Outcomes:
    """Return the outcomes in a run folder, or in a folder that contains nothing else."""
    return Outcomes(run / FOLDER if (run / FOLDER).is_dir() else run)


def read_outcome(path: Path) -> dict[str, Any]:
    """Return the content of an outcome's file; raise `FedcsoError` if it is not one."""
    try:
        content = json.loads(path.read_text())
        for one in content["traces"]:
            _as_trace(one)
        content["settings"]
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise FedcsoError(f"{path} is not an outcome of an experiment ({reason}): remove it") from reason
    return dict(content)


def _settings(part: Part) -> dict[str, Any]:
    """Return all that determines a part's result, as text; of its data only what the unit's name and labels tell."""
    return {
        **_identity(part),
        "plan": _fields(part.unit.plan),
        "methods": [{"method": type(one).__name__, **_fields(one)} for one in part.algorithms],
    }


def _identity(part: Part) -> dict[str, Any]:
    unit = part.unit
    labels = {name: str(value) for name, value in unit.labels.items()}
    return {"unit": unit.name, "labels": labels, "seeds": list(part.seeds), "codec": repr(unit.codec)}


def _fields(values: Any) -> dict[str, str]:
    return {one.name: repr(getattr(values, one.name)) for one in fields(values)}


def _has_settings(part: Part, saved: dict[str, Any]) -> bool:
    """Return whether a part has the settings of an outcome.

    An outcome stays valid when a later version adds a field whose default is what was done before.
    """
    unit = part.unit
    return (
        {name: saved.get(name) for name in _identity(part)} == _identity(part)
        and _agree(saved["plan"], unit.plan)
        and [one["method"] for one in saved["methods"]] == [type(one).__name__ for one in part.algorithms]
        and all(_agree(one, method) for one, method in zip(saved["methods"], part.algorithms, strict=True))
    )


def _agree(saved: dict[str, str], values: Any) -> bool:
    return all(saved.get(one.name, repr(_default(one))) == repr(getattr(values, one.name)) for one in fields(values))


def _default(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()


def _as_values(trace: Trace) -> dict[str, Any]:
    return {
        "rows": trace.rows,
        "costs": trace.costs.as_dict(),
        "measured": trace.measured,
        "failure": str(trace.failure) if trace.failure else None,
    }


def _as_trace(values: dict[str, Any]) -> Trace:
    failure = FedcsoError(values["failure"]) if values["failure"] else None
    return Trace(
        rows=values["rows"], costs=Costs(**values["costs"]), measured=dict(values["measured"]), failure=failure
    )
