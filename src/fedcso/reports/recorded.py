"""The recorded results of a run, from which reports are made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fedcso.core.costs import Costs
from fedcso.core.errors import FedcsoError
from fedcso.core.metric import DeclaredMetrics, Metric
from fedcso.core.plan import Plan
from fedcso.engines.choice import choose_by_seed, choose_exported
from fedcso.engines.stopping import is_exhausted, is_small_enough
from fedcso.runs.folder import RunFolder
from fedcso.runs.tables import Row, declared_in, table_in

BOOKKEEPING = frozenset({"algorithm", "seed", "round", "step", "seconds", *Costs().as_dict()})
"""Columns of an evaluation that are not metrics."""


@dataclass(frozen=True)
class Record:
    """The evaluations of a run and the declarations of its metrics."""

    rows: Sequence[Row]
    """One row per evaluation (metrics.csv)."""
    declared: DeclaredMetrics = DeclaredMetrics()  # noqa: RUF009 - frozen
    """The declared metrics (metrics.json); by default only names are known."""
    random: Sequence[Row] = ()
    """One row per run for the iterate at a uniformly random step (random-iterate.csv)."""
    clients: Sequence[Row] = ()
    """One row per run and client (clients.csv)."""
    ranked: Sequence[Row] = ()
    """The points of precision-recall curves (precision-recall.csv)."""
    stopped: frozenset[tuple[str, Any]] = frozenset()
    """The runs (method, seed) that a rule of the plan, ε or patience, ended before the last round."""

    def metrics(self) -> list[Metric]:
        """Return the metrics in display order."""
        return self.declared.ordered(name for row in self.rows for name in row if name not in BOOKKEEPING)

    def curves(self) -> list[Metric]:
        """Return the metrics to draw as curves: those with values, or else the deciding one."""
        there = [metric for metric in self.metrics() if any(has(row, metric.name) for row in self.rows)]
        deciding = [metric for metric in there if metric.name == self.declared.deciding]
        return [metric for metric in there if metric.curve] or deciding

    def chance(self, metric: Metric) -> float | None:
        """Return the chance level of a metric, or None if it is not known."""
        if not isinstance(metric.chance, str):
            return metric.chance
        return next((float(row[metric.chance]) for row in self.rows if has(row, metric.chance)), None)

    def at_clients(self) -> Metric | None:
        """Return the metric to show for each client, if it was measured there."""
        headline = self.declared.headline
        return self.declared[headline] if any(headline in row for row in self.clients) else None

    def iterates(self) -> dict[str, dict[str, list[Row]]]:
        """Return, by method, the evaluations of the last, the chosen (“best”) and the random iterate of every seed."""
        last: dict[str, dict[Any, Row]] = {}
        for row in self.rows:
            last.setdefault(row["algorithm"], {})[row["seed"]] = row
        best = choose_by_seed(self.rows, self.declared)
        return {
            name: {
                "last": list(by_seed.values()),
                "best": list(best.get(name, {}).values()),
                "random": [row for row in self.random if row["algorithm"] == name],
            }
            for name, by_seed in last.items()
        }

    def exported(self) -> dict[str, Row]:
        """Return, by method, the evaluation of the exported model."""
        return choose_exported(self.rows, self.declared)

    def chosen(self) -> Row:
        """Return the evaluation of the exported model with the best validation value over all methods."""
        exported = list(self.exported().values())
        if not exported or not self.declared.validated:
            raise FedcsoError("the run has no validation data to choose a model by: use a problem with validation data")
        metric, best = self.declared[self.declared.deciding], exported[0]
        for row in exported[1:]:
            if metric.is_better(float(row[metric.name]), float(best[metric.name])):
                best = row
        return best

    def statements(self) -> list[str]:
        """Return a sentence for each method on which model is exported and why."""
        deciding = self.declared.deciding
        why = "best" if self.declared.validated else "chosen without validation data: first seed, best"
        return [
            f"{name}: seed {row['seed']}, after round {row['round']} "
            f"({why} {self.declared[deciding].title}, {float(row[deciding]):.4g})"
            for name, row in self.exported().items()
        ]


def has(row: Row, metric: str) -> bool:
    """Return whether a row has a value of a metric."""
    return row.get(metric) not in (None, "")


def record_of(folder: RunFolder) -> Record:
    """Read the results in a run folder; raise if there are none yet."""
    path = folder.path / "metrics.csv"
    if not path.is_file():
        raise FedcsoError(f"{folder.path} has no results yet; continue it with: fedcso resume {folder.path}")
    rows = table_in(path)
    if not rows or not {"algorithm", "seed", "round"} <= rows[0].keys():
        raise FedcsoError(f"{path} is not a table of metrics")
    random, clients, ranked = (
        table_in(folder.path / name) for name in ("random-iterate.csv", "clients.csv", "precision-recall.csv")
    )
    declared = declared_in(folder)
    return Record(rows, declared, random, clients, ranked, _stopped(folder, rows, declared))


def _stopped(folder: RunFolder, rows: Sequence[Row], declared: DeclaredMetrics) -> frozenset[tuple[str, Any]]:
    settings = folder.config()
    plan = Plan(**{name: settings[name] for name in ("epsilon", "patience") if name in settings})
    runs: dict[tuple[str, Any], list[Row]] = {}
    for row in rows:
        runs.setdefault((row["algorithm"], row["seed"]), []).append(row)
    deciding = declared[declared.deciding] if declared.deciding else None
    return frozenset(
        run
        for run, own in runs.items()
        if is_small_enough(plan, own) or (deciding is not None and is_exhausted(plan, own, deciding))
    )
