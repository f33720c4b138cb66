"""What an experiment is: typed settings, and a function that carries out what is left of it in a run folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

from fedcso.runs.callbacks import Rhythm
from fedcso.runs.execute import execute_study
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Results, Study, Unit, seconds


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that an experiment depends on: a frozen dataclass of plain values, kept in the folder's config.yaml."""

    checkpoint_rounds: int = 0
    checkpoint_seconds: float = 30.0

    def flat(self) -> dict[str, Any]:
        """Return them by name, in the form in which they stand in a file."""
        return asdict(self)

    def updated(self: "S", values: Mapping[str, Any]) -> "S":
        """Return the same with what a file says; names that are not settings of the experiment are left alone."""
        given = {item.name: values[item.name] for item in fields(self) if item.name in values}
        for name, value in given.items():
            inner = getattr(self, name)
            if is_dataclass(inner) and not isinstance(inner, type):
                given[name] = replace(inner, **value)
        return replace(self, **given)


S = TypeVar("S", bound=Settings)


class Runner:
    """Carries out an experiment's units of work in its folder, and adds up how long they took to compute."""

    def __init__(self, folder: RunFolder, settings: Settings):
        self.folder = folder
        self.rhythm = Rhythm(settings.checkpoint_rounds, settings.checkpoint_seconds)
        self.seconds = 0.0

    def __call__(self, units: Sequence[Unit]) -> Results:
        """Return what is found; what was found before an interruption is taken from its checkpoints."""
        found = execute_study(self.folder, Study(units, self.folder.path / "checkpoints", self.rhythm), "none")
        self.seconds += seconds(units, found)
        return found


@dataclass(frozen=True)
class Experiment(Generic[S]):
    """A figure or table to be reproduced: `fedcso reproduce NAME`."""

    title: str
    settings: Callable[[bool], S]
    """(quick?) to all that it depends on."""
    carry_out: Callable[[RunFolder, S], None]
    """Does what is left of it in a folder."""

    def resume(self, folder: RunFolder) -> None:
        """Carry out what is left of it, with the settings that stand in the folder."""
        values = folder.config()
        self.carry_out(folder, self.settings(values["quick"]).updated(values))
