"""Decide with a ranking model: how sure its test results are, calibrated probabilities, and thresholds for alerts.

Validation data choose the calibration and the thresholds; test data only show what they do. Calibration and thresholds
need only counts of positives and negatives in score bins, which sites could send.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import ByClient, Judge
from fedcso.core.task import Task
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.encoders import Preparation
from fedcso.reports import decision_figures, figures
from fedcso.reports.bootstrap import bootstrap
from fedcso.reports.calibration import Calibration, calibrate
from fedcso.reports.importance import Importance, permutation_importance
from fedcso.reports.reliability import brier_score, expected_calibration_error, reliability
from fedcso.reports.score_counts import ScoreCounts, fixed_bins
from fedcso.reports.shares import require_share
from fedcso.reports.tables import as_markdown
from fedcso.reports.thresholds import NotReached, Threshold, for_alerts, for_precision, for_recall
from fedcso.runs.folder import RunFolder


@dataclass(frozen=True)
class Wishes:
    """What a threshold should achieve on the validation data; every wish gives a threshold."""

    precision: float | None = None
    """The smallest share of alerts that are right."""
    recall: float | None = 0.8
    """The smallest share of positives that are found."""
    alerts: float | None = None
    """The largest number of alerts in `rows` rows."""
    rows: float = 100
    prevalence: float | None = None
    """The share of positives that the model will meet; that of the validation data by default."""

    def __post_init__(self) -> None:
        two_rows = fixed_bins().count(np.array([-1.0, 1.0]), np.array([0, 1]))
        self.thresholds(two_rows)  # raises now, not after a long run, if a wish is impossible
        if self.prevalence is not None:
            require_share("prevalence", self.prevalence)

    def thresholds(self, counts: ScoreCounts) -> tuple[list[Threshold], list[str]]:
        """Return the thresholds, and a sentence for every wish that can't be fulfilled."""
        choices: list[Callable[[], Threshold]] = []
        if self.precision is not None:
            choices.append(partial(for_precision, counts, self.precision, self.prevalence))
        if self.recall is not None:
            choices.append(partial(for_recall, counts, self.recall))
        if self.alerts is not None:
            choices.append(partial(for_alerts, counts, self.alerts, self.rows, self.prevalence))
        found, missed = [], []
        for choose in choices:
            try:
                found.append(choose())
            except NotReached as reason:
                missed.append(str(reason))
        return found, missed


@dataclass(frozen=True)
class Held:
    """Scores, labels and sites of held-out rows."""

    scores: np.ndarray
    labels: np.ndarray
    sites: np.ndarray

    @classmethod
    def of(cls, judge: Judge, x: Tree, data: Any) -> "Held":
        """Score held-out data, all together or by client."""
        assert judge.rank is not None
        parts = data.clients if isinstance(data, ByClient) else [data]
        names = data.names if isinstance(data, ByClient) and data.names else [str(n) for n in range(len(parts))]
        ranked = [judge.rank(x, part) for part in parts]
        scores = np.concatenate([scores.double().cpu().numpy() for scores, _ in ranked])
        labels = np.concatenate([labels.cpu().numpy() for _, labels in ranked])
        return cls(scores, labels, np.repeat(np.array(names), [len(labels) for _, labels in ranked]))

    def counts(self) -> ScoreCounts:
        """Count positives and negatives in fixed score bins."""
        return fixed_bins().count(self.scores, self.labels)


def write_decisions(folder: RunFolder, task: Task, method: str, x: Tree, wishes: Wishes, seed: int = 0) -> str:
    """Write decisions.md, decisions.json and figures for a model to its run folder; return the text."""
    if task.judge.rank is None or task.test is None or task.validation is None:
        raise FedcsoError(f"{folder.path} has no ranking model with validation and test data (as auprc has)")
    validation, test = (Held.of(task.judge, x, data) for data in (task.validation, task.test))
    calibration = calibrate(validation.counts())
    thresholds, missed = wishes.thresholds(validation.counts())
    groups = reliability(test.counts(), calibration)
    pictures = {
        "decision-precision-recall": decision_figures.precision_recall(
            {"test": test.counts()}, thresholds[0] if thresholds else None
        ),
        "decision-reliability": decision_figures.reliability(groups),
    }
    columns = _importance(task, x, seed)
    if columns:
        pictures["decision-importance"] = decision_figures.importance(columns)
    for name, figure in pictures.items():
        folder.write(f"{name}.png", figures.render(figure, "png"))
    sentences = [
        *(f"Threshold {t.score:.4g} ({t.wanted} on validation data): {_outcome(t, test, wishes)}" for t in thresholds),
        *missed,
        f"Calibration ({calibration.method}): Brier score {brier_score(test.counts(), calibration):.4g}, expected "
        f"calibration error {expected_calibration_error(groups):.4g} on test data.",
    ]
    text = _text(method, test, sentences, columns, pictures, seed)
    folder.write("decisions.md", text)
    folder.write("decisions.json", json.dumps(_as_json(calibration, thresholds), indent=1))
    return text


def _outcome(threshold: Threshold, test: Held, wishes: Wishes) -> str:
    return threshold.judge(test.scores, test.labels).describe(wishes.prevalence)


def _importance(task: Task, x: Tree, seed: int) -> list[Importance]:
    """Return the importance of the columns of an own table; none for built-in data."""
    test, rank = task.test, task.judge.rank
    written = task.files.get("preparation.json")
    if written is None or rank is None or not isinstance(test, ByClient):
        return []
    columns: dict[str, list[int]] = {}
    place = 0
    for encoder in Preparation.from_json(written).encoders:
        columns.setdefault(encoder.name, []).extend(range(place, place + len(encoder.names)))
        place += len(encoder.names)
    whole, sites = test.whole, np.repeat(np.arange(len(test.clients)), [len(part.labels) for part in test.clients])

    def score(inputs: np.ndarray) -> np.ndarray:
        scores, _ = rank(x, Examples(whole.inputs.new_tensor(inputs), whole.labels))
        return np.asarray(scores.double().cpu().numpy())

    return permutation_importance(score, whole.inputs.numpy(), whole.labels.numpy(), sites, columns, seed=seed)


def _text(
    method: str, test: Held, sentences: Sequence[str], columns: Sequence[Importance], pictures: Any, seed: int
) -> str:
    sure = bootstrap({method: test.scores}, test.labels, test.sites, seed=seed)
    places = [None, *dict.fromkeys(test.sites.tolist())]
    rows = []
    for site in places:
        here = np.ones(len(test.labels), dtype=bool) if site is None else test.sites == site
        metrics = {metric: str(sure.estimate(method, metric, site)) for metric in ("average_precision", "auroc")}
        rows.append(
            {
                "site": "all" if site is None else site,
                "rows": int(here.sum()),
                "positives": int(test.labels[here].sum()),
            }
            | {name.replace("_", " "): value for name, value in metrics.items()}
        )
    parts = [
        f"# Deciding with {method}\n",
        "Test results of the model chosen on validation data, with 95 % bootstrap intervals over test rows:\n",
        as_markdown(rows),
        *(f"{sentence}\n" for sentence in sentences),
    ]
    if columns:
        falls = [{"column": c.column, "average precision lost": f"{c.mean:.4f} ± {c.spread:.4f}"} for c in columns]
        parts += ["Average precision lost when a column is shuffled within sites:\n", as_markdown(falls)]
    parts += [f"![{name}]({name}.png)\n" for name in pictures]
    return "\n".join(parts)


def _as_json(calibration: Calibration, thresholds: Sequence[Threshold]) -> dict[str, Any]:
    return {
        "calibration": calibration.to_dict(),
        "thresholds": [
            {"score": t.score, "probability": float(calibration.apply(np.array([t.score]))[0]), "wanted": t.wanted}
            for t in thresholds
        ],
    }
