"""`fedcso fit` from start to end: search on validation data, compare on test data, export, write the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fedcso.core.errors import FedcsoError
from fedcso.core.task import Task
from fedcso.datasets.tables.sites import Sites
from fedcso.fitting.budget import plan_search
from fedcso.fitting.chosen import FILE
from fedcso.fitting.config import FitConfig
from fedcso.fitting.contenders import Contender, compare
from fedcso.fitting.objectives import ORDINARY
from fedcso.fitting.search import Search
from fedcso.fitting.train import Trainer, Tried, full_task, run_settings
from fedcso.fitting.yardsticks import Yardstick, measure_yardsticks, rank_with
from fedcso.reports import tables
from fedcso.runs.execute import execute_study
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Results, Study, Unit

Say = Callable[[str], None]


@dataclass(frozen=True)
class Found:
    """The result of a search."""

    chosen: Tried
    ranked: Sequence[Tried]
    """The best setting of each objective and network that came far enough, best first."""
    trials: Sequence[dict[str, Any]]
    notes: Sequence[str]


def begin(config: FitConfig, sites: Sites) -> RunFolder:
    """Create the run folder of a fit."""
    data = {"digest": full_task("cross_entropy", config.nets(sites)[0], sites).digest(), "clients": len(sites.names)}
    return RunFolder.create(Path(config.out), config.name, {"command": "fit"} | config.flat(), data, config.sources())


def require_same_data(folder: RunFolder, config: FitConfig, sites: Sites) -> None:
    """Raise if the data are not those that the fit was started with."""
    began = folder.environment()["data"].get("digest")
    now = full_task("cross_entropy", config.nets(sites)[0], sites).digest()
    if began != now:
        raise FedcsoError(f"{folder.path} was started with other data (digest {began}, now {now}): start a new fit")


def search(trainer: Trainer, config: FitConfig, say: Say) -> Found:
    """Search for the best settings on validation data."""
    nets = config.nets(trainer.sites)
    searching = Search(trainer, nets, plan_search(config.minutes, trainer.sites, nets), config.seed, say)
    ranked = searching.find()
    notes = []
    if searching.skipped:
        notes.append(
            f"{searching.skipped} settings were not tried because the time was over; with more --minutes they are"
        )
    return Found(ranked[0], ranked, trial_rows(searching), notes)


def train_in(folder: RunFolder, sites: Sites) -> Trainer:
    """Return a trainer whose runs leave checkpoints in a run folder, from which they continue."""

    def run(units: Sequence[Unit]) -> Results:
        return execute_study(folder, Study(units, folder.path / "checkpoints", warns=False), "none")

    return Trainer(sites, run)


def compare_all(found: Found, trainer: Trainer, seed: int, say: Say) -> list[Contender]:
    """Compare the chosen model, ordinary federated learning and the yardsticks on the test data."""
    chosen = found.chosen
    candidates = [Yardstick(f"chosen: {chosen.group.title}", [rank_with(chosen)], False)]
    ordinary = next((one for one in found.ranked if one.group.key in ORDINARY), None)
    if ordinary is not None and ordinary is not chosen:
        note = "ordinary federated learning, tuned in the same search"
        candidates.append(Yardstick(ordinary.group.title, [rank_with(ordinary)], False, note))
    candidates += measure_yardsticks(chosen, trainer, seed, say)
    say("looking at the test data, once")
    return compare(candidates, trainer.sites, seed)


def trial_rows(searching: Search) -> list[dict[str, Any]]:
    """Return all settings that were tried, in the order in which they were."""
    return [
        {
            "rung": rung,
            "objective": one.group.objective.title,
            "network": one.group.net,
            "learning rate": one.rate,
            "learning rate of the first objective": one.group.first_rate or "",
            "steps": one.total_steps,
            "seeds": len(one.traces),
            "validation average precision": one.value,
        }
        for rung, tried in searching.tried.items()
        for one in tried
    ]


def single_stage(found: Found) -> Tried:
    """Return the best setting with one objective: over real sites a run minimises one."""
    return next(one for one in found.ranked if one.group.first_rate is None)


def as_settings(tried: Tried) -> dict[str, Any]:
    """Return a setting as a flat configuration of `fedcso run`, without the data."""
    return run_settings(tried.group, tried.rate, tried.steps)


def write_search(folder: RunFolder, found: Found) -> None:
    """Write all trials and the chosen settings, which `fedcso flower init --from` reads."""
    folder.write("trials.csv", tables.as_csv(found.trials))
    settings = yaml.safe_dump(as_settings(single_stage(found)), sort_keys=False, allow_unicode=True)
    folder.write(FILE, _explain_single_stage(found) + settings)


def _explain_single_stage(found: Found) -> str:
    """Return comments that say why the settings are not those of the chosen model; nothing if they are."""
    chosen, single = found.chosen, single_stage(found)
    if single is chosen:
        return ""
    return (
        f"# The chosen model minimises two objectives, one after the other: {chosen.group.title}.\n"
        "# A run minimises one. These are the best settings with one objective: "
        f"{single.group.title},\n# validation average precision {single.value:.4f} instead of {chosen.value:.4f}.\n"
    )


def task_with_test(tried: Tried, sites: Sites) -> Task:
    """Return the task of a setting with its test data."""
    return full_task(tried.group.key, tried.group.net, sites)
