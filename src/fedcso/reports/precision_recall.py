"""Precision-recall curves of finished runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.trace import Trace
from fedcso.reports import figures

PRECISION = Metric("precision", share=True)

POINTS = 200
"""The number of recall values at which a curve is stored."""


def rows(models: Sequence[tuple[str, int, Trace]], judge: Judge, test: Any) -> list[dict[str, Any]]:
    """Return one row per point of the curve of every run's chosen model; none if nothing can be ranked."""
    if judge.rank is None or test is None:
        return []
    from sklearn.metrics import precision_recall_curve  # imported late: slow to load

    result = []
    for name, seed, trace in models:
        ranking = judge.rank(trace.best, test)
        if not ranking[1].any() or not torch.isfinite(ranking[0]).all():
            continue
        scores, labels = (part.double().cpu().numpy() for part in ranking)
        precision, recall, _ = precision_recall_curve(labels, scores)
        for wanted in np.linspace(0, 1, POINTS):
            # Precision at the highest threshold that reaches this recall: a step function, as in average precision.
            place = int(np.flatnonzero(recall >= wanted)[-1])
            about = {"algorithm": name, "seed": seed, "recall": float(wanted), PRECISION.name: float(precision[place])}
            result.append(about | {"prevalence": float(labels.mean())})
    return result


def figure(rows: Sequence[dict[str, Any]]) -> figures.Drawing:
    """Draw the mean over seeds with bands, and the chance level."""
    picture = figures.Drawing(figsize=(5.2, 4.2), layout="constrained")
    axes = picture.subplots()
    for number, name in enumerate(dict.fromkeys(row["algorithm"] for row in rows)):
        these = [row for row in rows if row["algorithm"] == name]
        figures.curve(axes, these, PRECISION, name, number, x="recall")
    axes.axhline(float(rows[0]["prevalence"]), color="#8A8A8A", linewidth=1, linestyle=":", label="chance")
    figures.finish(axes, PRECISION)
    axes.set_xlabel("recall")
    axes.set_ylim(0, 1.02)
    figures.add_legend(picture)
    return picture
