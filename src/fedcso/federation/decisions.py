"""Decide with a model that was trained over real sites: calibration and thresholds from the counts that sites send.

Counts tell the rows but for the place of a score within its bin, so all that is computed from rows elsewhere is
computed here from rows with the scores of their bins' centres.
"""

from collections.abc import Sequence

import numpy as np

from fedcso.core.errors import FedcsoError
from fedcso.core.task import Task
from fedcso.core.tree import Tree
from fedcso.datasets.tables.encoders import Preparation
from fedcso.federation.counting import PARTS, SiteCounts
from fedcso.fitting.model import write_model
from fedcso.reports.bootstrap import bootstrap
from fedcso.reports.decisions import Held, decide, save_decisions
from fedcso.reports.tables import as_markdown
from fedcso.reports.wishes import Wishes
from fedcso.runs.folder import RunFolder


def write_decisions(
    folder: RunFolder,
    task: Task,
    method: str,
    x: Tree,
    answers: Sequence[SiteCounts],
    wishes: Wishes,
    notes: Sequence[str] = (),
) -> None:
    """Write decisions.md, decisions.json, figures and the self-contained model to a run folder.

    Args:
        folder: the folder of the run
        task: the run's, whose judge makes the network
        method: the name of the method that trained the model
        x: the chosen model
        answers: what the sites sent
        wishes: what thresholds should achieve
        notes: more that readers should know
    """
    validation, test = (as_rows(answers, part) for part in PARTS)
    decisions = decide(
        method, validation, test, wishes, bootstrap({method: test.scores}, test.labels, test.sites, resamples=1000)
    )
    sent = ["What the sites sent for this:\n", as_markdown(sent_rows(answers))]
    save_decisions(folder, decisions, more=[*sent, *(f"{note}\n" for note in notes)])
    if task.judge.network is None:
        return
    written = task.files.get("preparation.json")
    settings = folder.config()
    write_model(
        folder.path,
        task.judge.network(x, task.test),
        decisions.calibration,
        Preparation.from_json(written) if written else None,
        [one.threshold for one in decisions.thresholds],
        {
            "objective": settings["problem"],
            "method": method,
            "label": settings.get("label", ""),
            "trained at": f"{len(answers)} sites, whose rows stayed there",
            "calibrated on": f"{len(validation.labels)} rows, {validation.labels.sum()} of them positive",
        },
    )


def as_rows(answers: Sequence[SiteCounts], part: str) -> Held:
    """Return the rows that the sites counted; raise unless there are both positives and negatives."""
    scores, labels, sites = [np.empty(0)], [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=str)]
    for answer in answers:
        if part in answer.counts:
            counts = answer.counts[part]
            for label, numbers in enumerate((counts.negatives, counts.positives)):
                scores.append(np.repeat(counts.bins.centres, numbers))
                labels.append(np.full(numbers.sum(), label))
                sites.append(np.full(numbers.sum(), answer.site))
    held = Held(np.concatenate(scores), np.concatenate(labels), np.concatenate(sites))
    positives = int(held.labels.sum())
    if not 0 < positives < len(held.labels):
        raise FedcsoError(
            f"the {part} rows that sites have counted are {positives} positives and {len(held.labels) - positives} "
            "negatives, and both are needed"
        )
    return held


def sent_rows(answers: Sequence[SiteCounts]) -> list[dict[str, str]]:
    """Return a table of what each site sent."""
    rows = []
    for answer in answers:
        row = {"site": answer.site}
        for part in PARTS:
            found = answer.rows(part)
            row[f"{part} rows"] = f"{found[0]} ({found[1]} positive)" if found else "not counted"
        too_few = not answer.why_not and any(part not in answer.counts for part in PARTS)
        remark = "too few rows" if too_few else answer.why_not.replace("|", "/")  # it may be the site's own words
        rows.append(row | {"bytes": str(answer.bytes_up), "remark": remark})
    return rows
