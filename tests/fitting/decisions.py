"""A decision for tests, computed from made-up scores at nine sites; the last site has one test positive."""

from collections.abc import Sequence

import numpy as np

from fedcso.fitting.result import Contender, Decision, Part, Sent, SiteData
from fedcso.reports.bootstrap import bootstrap
from fedcso.reports.decisions import Held, decide
from fedcso.reports.importance import Importance
from fedcso.reports.wishes import Wishes

SITES = [f"hospital {name}" for name in "ABCDEFGHI"]


def held(positives: Sequence[int], rows: int, seed: int, strength: float = 3.0) -> Held:
    """Return made-up scores of rows at sites with these numbers of positives."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(rows) < number for number in positives]).astype(int)
    return Held(rng.normal(size=len(labels)) + strength * labels - 3, labels, np.repeat(SITES[: len(positives)], rows))


def example(wishes: Wishes | None = None, positives: Sequence[int] = (5, 4, 3, 3, 3, 2, 2, 2, 1)) -> Decision:
    """Return a decision about a model that is compared with two others."""
    validation, test = held(positives, 170, 0), held(positives, 170, 1)
    rng = np.random.default_rng(2)
    scores = {
        "FCSG-M": test.scores,
        "FedAvg, class-weighted": test.scores + rng.normal(size=len(test.scores)),
        "gradient boosting": test.scores + 0.5 * test.labels,
    }
    sure = bootstrap(scores, test.labels, test.sites, resamples=200)
    contenders = [
        Contender(
            name,
            sure.estimate(name),
            sure.estimate(name, "auroc"),
            name == "gradient boosting",
            None if name == "FCSG-M" else sure.difference("FCSG-M", name),
            "" if name == "FCSG-M" else "learning rate tuned",
        )
        for name in scores
    ]
    return Decision(
        decide("FCSG-M", validation, test, wishes or Wishes(precision=0.5), sure),
        {"file": "patients.csv", "label": "died (1 is positive)"},
        [
            SiteData(site, Part(510, 3 * number), Part(170, number), Part(170, number))
            for site, number in zip(SITES, positives, strict=False)
        ],
        {"objective": "average precision, raw scores, margin 1", "method": "FCSG-M", "learning rate": 1.0},
        contenders,
        [Importance("age", 0.21, 0.02), Importance("creatinine", 0.1, 0.03), Importance("ward", -0.002, 0.004)],
        [
            sent
            for site in SITES[: len(positives)]
            for sent in (
                Sent(site, "updates of the model", 40, 40 * 1200, 40 * 4800),
                Sent(site, "counts of positives and negatives in score bins", 1, 2 * 120, 1920),
            )
        ],
        ["patient_id: left out, because it looks like an identifier"],
        [{"objective": "AUPRC", "learning rate": 1.0, "validation average precision": 0.81}],
    )
