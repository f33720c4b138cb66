"""Decide with a ranking model: how sure its test results are, calibrated probabilities, and thresholds for alerts.

Validation data choose the calibration and the thresholds; test data only show what they do. Calibration and thresholds
need only counts of positives and negatives in score bins, which sites could send.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import ByClient, Judge
from fedcso.core.task import Task
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.encoders import Preparation
from fedcso.reports import decision_figures, figures
from fedcso.reports.bootstrap import Bootstrap, Measured, bootstrap
from fedcso.reports.calibration import Calibration, calibrate
from fedcso.reports.held import Held
from fedcso.reports.importance import Importance, permutation_importance
from fedcso.reports.outcome import Outcome
from fedcso.reports.reliability import Group, brier_score, expected_calibration_error, reliability
from fedcso.reports.score_counts import ScoreCounts
from fedcso.reports.tables import as_markdown
from fedcso.reports.thresholds import Threshold
from fedcso.reports.wishes import Wishes
from fedcso.runs.folder import RunFolder


@dataclass(frozen=True)
class JudgedThreshold:
    """A threshold that validation data chose, and what it does on test data."""

    threshold: Threshold
    probability: float
    """The calibrated probability at the threshold."""
    test: Outcome
    by_site: Mapping[str, Outcome]


@dataclass(frozen=True)
class AtSite:
    """Test results at a site."""

    site: str
    rows: int
    positives: int
    average_precision: Measured
    auroc: Measured


@dataclass(frozen=True, eq=False)
class Decisions:
    """What is known of a model when one decides with it."""

    method: str
    calibration: Calibration
    thresholds: Sequence[JudgedThreshold]
    missed: Sequence[str]
    """A sentence for every wish that no threshold fulfils."""
    prevalence: float | None
    """The share of positives that the model will meet, if that is another than in the data."""
    counts: ScoreCounts
    """Of the test data."""
    groups: Sequence[Group]
    """Test rows of similar probability."""
    brier: float
    calibration_error: float
    whole: AtSite
    """The results on all test data."""
    sites: Sequence[AtSite]

    def sentences(self) -> list[str]:
        """Say what the thresholds do, which wishes are not fulfilled, and whether probabilities hold."""
        return [
            *(
                f"Threshold {one.threshold.score:.4g} ({one.threshold.wanted} on validation data): "
                f"{one.test.describe(self.prevalence)}"
                for one in self.thresholds
            ),
            *self.missed,
            f"Calibration ({self.calibration.method}): Brier score {self.brier:.4g}, expected calibration error "
            f"{self.calibration_error:.4g} on test data.",
        ]

    def figures(self, columns: Sequence[Importance] = ()) -> dict[str, bytes]:
        """Draw precision against recall, reliability, and the importance of columns; return PNG files by name."""
        chosen = self.thresholds[0].threshold if self.thresholds else None
        drawn = {
            "decision-precision-recall": decision_figures.precision_recall({"test": self.counts}, chosen),
            "decision-reliability": decision_figures.reliability(self.groups),
        }
        if columns:
            drawn["decision-importance"] = decision_figures.importance(columns)
        return {name: figures.render(figure, "png") for name, figure in drawn.items()}


def decide(method: str, validation: Held, test: Held, wishes: Wishes, sure: Bootstrap) -> Decisions:
    """Choose the calibration and thresholds on validation data, and measure on test data what they do.

    `sure` holds the resampled results of the method, and perhaps of others.
    """
    calibration = calibrate(validation.counts())
    thresholds, missed = wishes.thresholds(validation.counts())
    names = list(dict.fromkeys(test.sites.tolist()))

    def at(site: str | None, here: np.ndarray) -> AtSite:
        measured = (sure.estimate(method, metric, site) for metric in ("average_precision", "auroc"))
        return AtSite(site or "all", int(here.sum()), int(test.labels[here].sum()), *measured)

    def judged(threshold: Threshold) -> JudgedThreshold:
        parts = {name: threshold.judge(*test.at(name)) for name in names}
        probability = float(calibration.apply(np.array([threshold.score]))[0])
        return JudgedThreshold(threshold, probability, threshold.judge(test.scores, test.labels), parts)

    groups = reliability(test.counts(), calibration)
    return Decisions(
        method,
        calibration,
        [judged(threshold) for threshold in thresholds],
        missed,
        wishes.prevalence,
        test.counts(),
        groups,
        brier_score(test.counts(), calibration),
        expected_calibration_error(groups),
        at(None, np.ones(len(test.labels), dtype=bool)),
        [at(name, test.sites == name) for name in names],
    )


def write_decisions(folder: RunFolder, task: Task, method: str, x: Tree, wishes: Wishes, seed: int = 0) -> str:
    """Write decisions.md, decisions.json and figures for a model to its run folder; return the text."""
    if task.judge.rank is None or task.test is None or task.validation is None:
        raise FedcsoError(f"{folder.path} has no ranking model with validation and test data (as auprc has)")
    validation, test = (Held.of(task.judge, x, data) for data in (task.validation, task.test))
    sure = bootstrap({method: test.scores}, test.labels, test.sites, seed=seed)
    decisions = decide(method, validation, test, wishes, sure)
    written = task.files.get("preparation.json")
    columns: list[Importance] = []
    if written is not None and isinstance(task.test, ByClient):
        columns = column_importance(task.judge, x, task.test, Preparation.from_json(written), seed)
    return save_decisions(folder, decisions, columns)


def save_decisions(
    folder: RunFolder, decisions: Decisions, columns: Sequence[Importance] = (), more: Sequence[str] = ()
) -> str:
    """Write decisions.md, decisions.json and figures to a run folder; return the text, which ends with `more`."""
    pictures = decisions.figures(columns)
    for name, png in pictures.items():
        folder.write(f"{name}.png", png)
    text = _text(decisions, columns, more, pictures)
    folder.write("decisions.md", text)
    chosen = [
        {
            "score": one.threshold.score,
            "probability": one.probability,
            "wanted": one.threshold.wanted,
            "on test data": asdict(one.test),
        }
        for one in decisions.thresholds
    ]
    tested = {
        "rows": decisions.whole.rows,
        "positives": decisions.whole.positives,
        "average_precision": decisions.whole.average_precision.value,
        "auroc": decisions.whole.auroc.value,
        "brier_score": decisions.brier,
        "expected_calibration_error": decisions.calibration_error,
    }
    written = {"calibration": decisions.calibration.to_dict(), "thresholds": chosen, "test": tested}
    folder.write("decisions.json", json.dumps(written, indent=1))
    return text


def column_importance(judge: Judge, x: Tree, test: ByClient, preparation: Preparation, seed: int) -> list[Importance]:
    """Return the importance of the columns of a user's own table, the largest first."""
    rank = judge.rank
    assert rank is not None
    columns: dict[str, list[int]] = {}
    place = 0
    for encoder in preparation.encoders:
        columns.setdefault(encoder.name, []).extend(range(place, place + len(encoder.names)))
        place += len(encoder.names)
    whole, sites = test.whole, np.repeat(np.arange(len(test.clients)), [len(part.labels) for part in test.clients])

    def score(inputs: np.ndarray) -> np.ndarray:
        scores, _ = rank(x, Examples(torch.from_numpy(inputs), whole.labels))
        return np.asarray(scores.double().cpu().numpy())

    return permutation_importance(score, whole.inputs.numpy(), whole.labels.numpy(), sites, columns, seed=seed)


def _text(decisions: Decisions, columns: Sequence[Importance], more: Sequence[str], pictures: Iterable[str]) -> str:
    rows = [
        {
            "site": one.site,
            "rows": one.rows,
            "positives": one.positives,
            "average precision": str(one.average_precision),
            "auroc": str(one.auroc),
        }
        for one in (decisions.whole, *decisions.sites)
    ]
    parts = [
        f"# Deciding with {decisions.method}\n",
        "Test results of the model chosen on validation data, with 95 % bootstrap intervals over test rows:\n",
        as_markdown(rows),
        *(f"{sentence}\n" for sentence in decisions.sentences()),
    ]
    if columns:
        falls = [{"column": c.column, "average precision lost": f"{c.mean:.4f} ± {c.spread:.4f}"} for c in columns]
        parts += ["Average precision lost when a column is shuffled within sites:\n", as_markdown(falls)]
    parts += more
    parts += [f"![{name}]({name}.png)\n" for name in pictures]
    return "\n".join(parts)
