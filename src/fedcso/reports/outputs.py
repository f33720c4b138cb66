"""What a finished (or half-finished) run leaves in its folder for people and for other programs."""

import logging
from collections.abc import Sequence
from typing import Any

import torch
from safetensors.torch import save as save_tensors

from fedcso.core.errors import FedcsoError
from fedcso.core.metrics import ByClient
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.core.tree import named_leaves
from fedcso.reports import charts, figures, page, precision_recall, tables
from fedcso.reports.export import as_onnx, loading_example
from fedcso.reports.recorded import table_in
from fedcso.runs.collapse import collapse
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Results

log = logging.getLogger("fedcso")


def write_metrics(
    folder: RunFolder, found: Results, seeds: Sequence[int], task: Task, over: bool = False
) -> list[dict[str, Any]]:
    """metrics.csv and clients.csv, as far as the runs have come; clients measure the model when it is `over`."""
    rows = tables.metric_rows(found, seeds)
    folder.write("metrics.csv", tables.as_csv(rows))
    folder.write("clients.csv", tables.as_csv(tables.client_rows(found, seeds, task, measure=over)))
    return rows


def write_all(folder: RunFolder, found: Results, seeds: Sequence[int], task: Task) -> list[dict[str, Any]]:
    """Everything; returns the summary table."""
    rows = write_metrics(folder, found, seeds, task, over=True)
    models = list(tables.runs(found, seeds))
    folder.write("model-final.safetensors", _models(models, "last"))
    folder.write("model-best.safetensors", _models(models, "best"))
    test = task.test.whole if isinstance(task.test, ByClient) else task.test
    if ranked := precision_recall.rows(models, task.judge, test):
        folder.write("precision-recall.csv", tables.as_csv(ranked))
    _deliver(folder, models, task, test)
    if task.notes:
        folder.write("notes.txt", "".join(f"{note}\n" for note in task.notes))
    return write_report(folder, rows, title_of(folder), folder.config()["rounds"])


def _deliver(folder: RunFolder, models: Sequence[tuple[str, int, Trace]], task: Task, test: Any) -> None:
    """The best model of every method's first seed, for other programs, and how to load it."""
    if task.judge.network is None or test is None:
        return
    first: dict[str, Trace] = {}
    for name, _, trace in models:
        first.setdefault(name, trace)
    files = []
    for name, trace in first.items():
        try:
            exported = as_onnx(task.judge.network(trace.best, test))
        except FedcsoError as error:  # the results are worth more than the file
            log.warning("%s: %s", name, error)
            continue
        files.append(f"{name}.onnx")
        folder.write(f"models/{files[-1]}", exported)
    if files:
        for name, content in task.files.items():
            folder.write(f"models/{name}", content)
        folder.write("models/LOADING.md", loading_example(files[0], "preparation.json" in task.files))


def title_of(folder: RunFolder) -> str:
    """What a run is about."""
    clients = folder.environment()["data"].get("clients")
    return str(folder.config()["problem"]) + (f", {clients} clients" if clients else "")


def write_report(
    folder: RunFolder, rows: list[dict[str, Any]], title: str, rounds: int | None = None
) -> list[dict[str, Any]]:
    """Figures, tables and the page, from the folder's CSV files; returns the summary table."""
    table = tables.summary(rows, rounds)
    write_table(folder, table)
    seeds = len({row["seed"] for row in rows})
    caption = f"Mean over {seeds} seeds with 95 % confidence bands." if seeds > 1 else "One seed."
    pictures = {"curves": (figures.curves(rows, title), caption)}
    if ranked := table_in(folder.path / "precision-recall.csv"):
        pictures["precision-recall"] = precision_recall.figure(ranked), "Precision and recall on the test data."
    images = []
    for name, (figure, words) in pictures.items():
        images.append((words, figures.render(figure, "png")))
        folder.write(f"{name}.png", images[-1][1])
        folder.write(f"{name}.pdf", figures.render(figure, "pdf"))
    kept = folder.path / "notes.txt"
    notes = [*(kept.read_text().splitlines() if kept.is_file() else []), *_collapses(rows)]
    clients = table_in(folder.path / "clients.csv")
    more = {"Clients": tables.client_summary(clients)}
    drawn = charts.charts(rows, ranked, clients)
    html = page.page(title, images, table, folder.config(), folder.environment(), notes, more, drawn)
    folder.write("report.html", html)
    return table


def _collapses(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Runs that learnt something and lost it."""
    runs: dict[tuple[str, Any], list[dict[str, Any]]] = {}
    for row in rows:
        runs.setdefault((row["algorithm"], row["seed"]), []).append(row)
    found = {run: collapse(evaluations) for run, evaluations in runs.items()}
    return [f"{name}, seed {seed} {reason}" for (name, seed), reason in found.items() if reason]


def write_table(folder: RunFolder, table: Sequence[dict[str, Any]]) -> None:
    """table.csv, table.md and table.tex."""
    folder.write("table.csv", tables.as_csv(tables.flat(table)))
    folder.write("table.md", tables.as_markdown(table))
    folder.write("table.tex", tables.as_latex(table))


def _models(models: Sequence[tuple[str, int, Trace]], which: str) -> bytes:
    """All runs' models in one file, named `algorithm/seed/leaf`."""
    tensors: dict[str, torch.Tensor] = {}
    for name, seed, trace in models:
        for path, leaf in named_leaves(getattr(trace, which)):
            tensors[f"{name}/{seed}/{path or 'x'}"] = leaf.detach().cpu().contiguous().clone()
    return save_tensors(tensors)
