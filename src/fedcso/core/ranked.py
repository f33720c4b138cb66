"""How well scores rank positives before negatives: average precision and AUROC, bit for bit those of scikit-learn.

scikit-learn checks its arguments for most of its time, milliseconds a call, which evaluating small models often would
spend most of its time on; and importing it takes a second.
"""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def average_precision(labels: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Return Σ (R_n − R_{n−1}) P_n over all thresholds, for labels 0 and 1 of which at least one is 1."""
    positives, negatives = _found_at_thresholds(labels, scores)
    precision = (positives / (positives + negatives))[::-1]
    recall = np.append((positives / positives[-1])[::-1], 0.0)
    return float(max(0.0, -np.sum(np.diff(recall) * precision)))


def auroc(labels: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Return the area under the curve of true against false positives, for labels 0 and 1 of which both occur."""
    positives, negatives = _found_at_thresholds(labels, scores)
    if len(positives) > 2:  # points between others on a line change nothing but the rounding
        corners = np.r_[True, (np.diff(positives, 2) != 0) | (np.diff(negatives, 2) != 0), True]
        positives, negatives = positives[corners], negatives[corners]
    true, false = (np.append(0.0, counts) / counts[-1] for counts in (positives, negatives))
    return float((np.diff(false) * (true[1:] + true[:-1]) / 2.0).sum())


def _found_at_thresholds(labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Numbers, Numbers]:
    """Return the numbers of positives and negatives with at least each score that occurs, from the highest down."""
    scores = np.asarray(scores)
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.nonzero(np.diff(scores[order]))[0], len(order) - 1)
    positives: Numbers = np.cumsum(np.asarray(labels)[order] == 1, dtype=np.float64)[last]
    return positives, 1.0 + last - positives
