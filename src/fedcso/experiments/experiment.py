"""The parts of an experiment: typed settings, and a function that runs it in a run folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from fedcso.core.errors import InvalidValue, UnknownName, require_count
from fedcso.core.trace import Trace
from fedcso.core.user_code import Source
from fedcso.experiments import outcomes
from fedcso.experiments.outcomes import Measure, Outcomes
from fedcso.runs.callbacks import Rhythm
from fedcso.runs.execute import execute_study
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Part, Results, Study, Unit, seconds


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of an experiment: a frozen dataclass of plain values, saved in the folder's config.yaml."""

    checkpoint_rounds: int = 0
    checkpoint_seconds: float = 30.0
    processes: int = 1
    """Processes that run parts of the experiment side by side, each on a core of its own; at most one for each core."""

    def __post_init__(self) -> None:
        require_count("processes", self.processes)

    def flat(self) -> dict[str, Any]:
        """Return the settings by name, as they are saved in a file."""
        return asdict(self)

    def limited_to(self: "S", data: Sequence[str]) -> "S":
        """Return these settings for some of the data sets only; raise if the experiment has no choice of them."""
        raise InvalidValue("data", " ".join(data), "left out: this experiment has no choice of data sets")

    def with_methods(self: "S", texts: Sequence[str]) -> "S":
        """Return these settings with further methods; raise if the experiment has no choice of them."""
        raise InvalidValue("algorithm", " ".join(texts), "left out: this experiment has no choice of methods")

    def own_files(self) -> list[Source]:
        """Return the user's files that the experiment depends on."""
        return []

    def updated(self: "S", values: Mapping[str, Any]) -> "S":
        """Return these settings, updated with the values of a file; other names in the file are ignored."""
        given = {item.name: values[item.name] for item in fields(self) if item.name in values}
        for name, value in given.items():
            inner = getattr(self, name)
            if is_dataclass(inner) and not isinstance(inner, type):
                given[name] = replace(inner, **value)
        return replace(self, **given)


S = TypeVar("S", bound=Settings)


def require_known(data: Sequence[str], known: Sequence[str]) -> None:
    """Raise `UnknownName` unless an experiment has all these data sets."""
    for name in data:
        if name not in known:
            raise UnknownName("data set of the experiment", name, known)


class Runner:
    """Runs the units of an experiment in its folder, and adds up the seconds that they take."""

    def __init__(self, folder: RunFolder, settings: Settings, warns: bool = True):
        self.folder, self.warns = folder, warns
        self.rhythm = Rhythm(settings.checkpoint_rounds, settings.checkpoint_seconds)
        self.processes = settings.processes
        self.seconds = 0.0

    def __call__(self, units: Sequence[Unit]) -> Results:
        """Run units and return their results; units that have run before are read from their checkpoints."""
        return self._run(units, Study(units, self._checkpoints, self.rhythm, self.warns, processes=self.processes))

    def outcomes(self, units: Sequence[Unit], measure: Measure = outcomes.measure_nothing) -> Results:
        """Run units and return their outcomes: traces without models, with what `measure` returned for each.

        Runs whose outcome is in the folder, from an earlier experiment perhaps, are not run again.
        """
        saved = Outcomes(self.folder.path / outcomes.FOLDER)

        def save(part: Part, traces: Sequence[Trace]) -> None:
            for trace in traces:
                trace.measured = {} if trace.failure else measure(part, trace)
            saved.save(part, traces)

        return self._run(
            units,
            Study(
                units,
                self._checkpoints,
                self.rhythm,
                self.warns,
                recall=saved.recall,
                on_finished=save,
                processes=self.processes,
            ),
        )

    @property
    def _checkpoints(self) -> Path:
        return self.folder.path / "checkpoints"

    def _run(self, units: Sequence[Unit], study: Study) -> Results:
        found = execute_study(self.folder, study, "none")
        self.seconds += seconds(units, found)
        return found


@dataclass(frozen=True)
class Experiment(Generic[S]):
    """A figure or table to reproduce with `fedcso reproduce NAME`."""

    title: str
    settings: Callable[[bool], S]
    """Returns the settings of the full version, or of the quick one if its argument is true."""
    execute: Callable[[RunFolder, S], None]
    """Runs what is left of the experiment in a folder, and writes the results."""

    def resume(self, folder: RunFolder) -> None:
        """Run what is left of the experiment in a folder, with the settings saved there."""
        values = folder.config()
        self.execute(folder, self.settings(values["quick"]).updated(values))
