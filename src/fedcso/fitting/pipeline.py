"""`fedcso fit` from start to end: search on validation data, compare on test data, decide, export, write the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import ByClient
from fedcso.core.tree import numel
from fedcso.datasets.examples import Examples, pool_examples
from fedcso.datasets.tables.sites import Sites
from fedcso.fitting.budget import plan_search
from fedcso.fitting.chosen import FILE as CHOSEN
from fedcso.fitting.config import FitConfig
from fedcso.fitting.contenders import Comparison, compare
from fedcso.fitting.fitted import Fitted
from fedcso.fitting.model import write_model
from fedcso.fitting.objectives import ORDINARY
from fedcso.fitting.page import write_page
from fedcso.fitting.result import Decision, Part, Sent, SiteData
from fedcso.fitting.search import Search
from fedcso.fitting.train import Trainer, Tried, make_task, run_settings
from fedcso.fitting.yardsticks import Yardstick, measure_yardsticks, rank_with
from fedcso.reports import tables
from fedcso.reports.decisions import column_importance, decide
from fedcso.reports.held import Held
from fedcso.runs.execute import at_work, execute_study
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Results, Study, Unit

Say = Callable[[str], None]


@dataclass(frozen=True)
class Found:
    """The result of a search."""

    chosen: Tried
    ranked: Sequence[Tried]
    """The best setting of each objective and network that came far enough, best first."""
    tried: dict[str, list[Tried]]
    """All settings, by rung."""
    notes: Sequence[str]


def begin(config: FitConfig, sites: Sites) -> RunFolder:
    """Create the run folder of a fit."""
    data = {"digest": _digest(config, sites), "clients": len(sites.names)}
    return RunFolder.create(Path(config.out), config.name, {"command": "fit"} | config.flat(), data, config.sources())


def require_same_data(folder: RunFolder, config: FitConfig, sites: Sites) -> None:
    """Raise if the data are not those that the fit was started with."""
    began, now = folder.environment()["data"].get("digest"), _digest(config, sites)
    if began != now:
        raise FedcsoError(f"{folder.path} was started with other data (digest {began}, now {now}): start a new fit")


def carry_out(folder: RunFolder, config: FitConfig, sites: Sites, say: Say) -> Fitted:
    """Do what is left of a fit; finished runs are read from their checkpoints."""

    def run(units: Sequence[Unit]) -> Results:
        return execute_study(folder, Study(units, folder.path / "checkpoints", warns=False), "none")

    trainer = Trainer(sites, run)
    found = search(trainer, config, say)
    folder.write("trials.csv", tables.as_csv(trial_rows(found)))
    folder.write(CHOSEN, for_real_sites(found))
    compared = compare_all(found, trainer, config.seed, say)
    with at_work(folder):
        say("calibrating, choosing thresholds, writing the page and the model")
        decision = _decide(found, compared, config, sites)
        chosen = decision.decisions
        write_page(folder, decision)
        calibration = chosen.calibration
        write_model(
            folder.path,
            found.chosen.network(),
            calibration if config.prevalence is None else calibration.at_prevalence(config.prevalence),
            sites.preparation,
            [one.threshold for one in chosen.thresholds],
            {**decision.about, **decision.settings},
        )
    folder.mark("done")
    return Fitted(folder.path, decision)


def search(trainer: Trainer, config: FitConfig, say: Say) -> Found:
    """Search for the best settings on validation data."""
    budget = plan_search(config.minutes, trainer.sites, config.nets(trainer.sites))
    searching = Search(trainer, budget, config.seed, say)
    ranked = searching.find()
    notes = []
    if searching.skipped:
        notes.append(
            f"{searching.skipped} groups of settings were not tried because {config.minutes:g} minutes were over: give "
            "more with --minutes"
        )
    if searching.unfinished:
        notes.append(
            f"the model was still improving after {ranked[0].total_steps:,} steps: give the search more time with "
            "--minutes"
        )
    return Found(ranked[0], ranked, searching.tried, notes)


def trial_rows(found: Found) -> list[dict[str, Any]]:
    """Return all settings that were tried, in the order in which they were."""
    return [
        {
            "rung": rung,
            "objective": one.group.objective.title,
            "network": one.group.net,
            "learning rate": one.rate,
            "learning rate of the first objective": one.group.first_rate or "",
            "weight decay": one.group.weight_decay,
            "steps": one.total_steps,
            "seeds": len(one.traces),
            "validation average precision": one.value,
        }
        for rung, tried in found.tried.items()
        for one in tried
    ]


def _digest(config: FitConfig, sites: Sites) -> str:
    return make_task("cross_entropy", config.nets(sites)[0], sites).digest()


def for_real_sites(found: Found) -> str:
    """Return the best setting with one objective as a file for `fedcso run`: over real sites a run has one.

    If the chosen model has two, comments say so.
    """
    tried = sorted((one for some in found.tried.values() for one in some), key=lambda one: -one.value)
    chosen, single = found.chosen, next(one for one in (*found.ranked, *tried) if one.group.first_rate is None)
    settings = run_settings(single.group, single.rate, single.steps)
    comments = []
    if single is not chosen:
        comments = [
            f"# The chosen model minimises two objectives, one after the other: {chosen.group.title}.",
            f"# A run minimises one. These are the best settings with one: {single.group.title}",
            f"# (validation average precision {single.value:.4f} instead of {chosen.value:.4f}).",
        ]
    return "\n".join([*comments, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)])


def compare_all(found: Found, trainer: Trainer, seed: int, say: Say) -> Comparison:
    """Compare the chosen model, ordinary federated learning and the yardsticks on the test data."""
    chosen = found.chosen
    candidates = [Yardstick(chosen.group.title, [rank_with(chosen)], False)]
    ordinary = next((one for one in found.ranked if one.group.key in ORDINARY), None)
    if ordinary is not None and ordinary is not chosen:
        name = f"ordinary federated learning: {ordinary.group.title}"
        candidates.append(Yardstick(name, [rank_with(ordinary)], False, "tuned in the same search"))
    candidates += measure_yardsticks(chosen, trainer, seed, say)
    say("looking at the test data, once")
    return compare(candidates, trainer.sites, seed)


def _decide(found: Found, compared: Comparison, config: FitConfig, sites: Sites) -> Decision:
    chosen, judge = found.chosen, found.chosen.task.judge
    held = ByClient(pool_examples(sites.validation), sites.validation, sites.names)
    validation = Held.of(judge, chosen.model, held)
    decisions = decide(chosen.group.title, validation, compared.test, config.wishes(), compared.sure)
    importance = []
    if sites.preparation is not None:
        test = ByClient(pool_examples(sites.test), sites.test, sites.names)
        importance = column_importance(judge, chosen.model, test, sites.preparation, config.seed)
    return Decision(
        decisions,
        {"data": config.data, "label": config.label, "positive": config.positive or "1, true, yes or the rarer label"},
        [_site_data(sites, number) for number in range(len(sites.names))],
        _settings(chosen),
        compared.contenders,
        importance,
        _sent(found, validation, sites),
        [*sites.notes, *found.notes],
        trial_rows(found),
    )


def _settings(chosen: Tried) -> dict[str, Any]:
    first = {} if chosen.group.first_rate is None else {"learning rate of the first objective": chosen.group.first_rate}
    return {
        "objective": chosen.group.objective.title,
        "network": chosen.group.net,
        "parameters": numel(chosen.model),
        "learning rate": chosen.rate,
        **first,
        "weight decay": chosen.group.weight_decay,
        "steps": chosen.total_steps,
        "seed": chosen.seed,
    }


def _site_data(sites: Sites, number: int) -> SiteData:
    def part(examples: Examples) -> Part:
        return Part(len(examples.labels), int(examples.labels.sum()))

    return SiteData(
        sites.names[number], part(sites.train[number]), part(sites.validation[number]), part(sites.test[number])
    )


def _sent(found: Found, validation: Held, sites: Sites) -> list[Sent]:
    """Return what leaves each site: updates of models during the search, and counts for calibration."""
    messages, size = dict.fromkeys(sites.names, 0), dict.fromkeys(sites.names, 0)
    for trace in (trace for tried in found.tried.values() for one in tried for trace in one.traces):
        for number, rounds in trace.participation.items():
            messages[sites.names[number]] += rounds
            size[sites.names[number]] += trace.costs.bytes_up // len(trace.participation)
    updates = [
        Sent(name, "updates of models, in all trials", messages[name], size[name] // 4, size[name])
        for name in sites.names
        if messages[name]
    ]
    bins = {}
    for name in sites.names:
        scores, labels = validation.at(name)
        if len(labels):
            bins[name] = int(np.count_nonzero(Held(scores, labels, labels).counts().rows))
    what = "counts of positives and negatives in score bins"
    return updates + [Sent(name, what, 1, 3 * number, 3 * 8 * number) for name, number in bins.items()]
