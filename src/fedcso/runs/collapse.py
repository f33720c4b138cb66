"""A run that had learnt something and then lost it: seen, dated and, as far as the metrics tell, explained."""

from collections.abc import Sequence
from typing import Any

from fedcso.core.metrics import HIGHER_IS_BETTER

LEARNT = 0.05
"""A metric must have risen by this much above its start before it can be said to have collapsed."""

LOST = 0.5
"""It has collapsed when it is back below this share of what it had gained."""


def collapse(rows: Sequence[dict[str, Any]]) -> str | None:
    """What happened, from the evaluations of one run so far: at the first evaluation that shows it, else None."""
    for metric in sorted(HIGHER_IS_BETTER & rows[0].keys()):
        best = rows[0]
        for row in rows:
            if float(row[metric]) > float(best[metric]):
                best = row
            gained = float(best[metric]) - float(rows[0][metric])
            if gained > LEARNT and float(row[metric]) < float(rows[0][metric]) + LOST * gained:
                return (
                    f"collapsed: {metric} was {float(best[metric]):.4f} after round {best['round']} and is "
                    f"{float(row[metric]):.4f} after round {row['round']}; {_cause(row)}"
                )
    return None


def _cause(row: dict[str, Any]) -> str:
    saturated = float(row.get("saturated") or 0.0)
    if saturated > 0.5:
        return (
            f"{saturated:.0%} of the scores are so large that their sigmoid has no slope left: single gradients "
            "were too long: set --clip (1, say), a smaller --learning-rate, or --itself 1"
        )
    return "a smaller learning rate, one that falls (cosine), or --clip may keep it"
