"""Write the results of a run to its folder: metrics, tables, figures, models and the report page."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from safetensors.torch import save as save_tensors

from fedcso.core.errors import FedcsoError
from fedcso.core.initial_weights import InitialWeights, as_metadata, leaves_by_path
from fedcso.core.judge import ByClient
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.core.tree import Tree
from fedcso.engines.loop import declare
from fedcso.reports import charts, figures, page, precision_recall, tables
from fedcso.reports.export import as_onnx, loading_example
from fedcso.reports.recorded import Record, record_of
from fedcso.runs.collapse import collapse
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Results
from fedcso.runs.tables import Row

log = logging.getLogger("fedcso")


def write_metrics(folder: RunFolder, found: Results, seeds: Sequence[int], task: Task, over: bool = False) -> None:
    """Write metrics.csv and related files with the results so far; evaluate at the clients if the run is `over`."""
    folder.write("metrics.csv", tables.as_csv(tables.metric_rows(found, seeds)))
    folder.write("metrics.json", declare(task).to_json())
    folder.write("random-iterate.csv", tables.as_csv(tables.random_rows(found, seeds)))
    clients = tables.client_rows(found, seeds, task, (lambda trace: trace.best) if over else None)
    folder.write("clients.csv", tables.as_csv(clients))


def write_all(folder: RunFolder, found: Results, seeds: Sequence[int], task: Task) -> list[dict[str, Any]]:
    """Write all files and return the table of results."""
    write_metrics(folder, found, seeds, task, over=True)
    models = list(tables.runs(found, seeds))
    for name, model in MODELS.items():
        folder.write(f"model-{name}.safetensors", _models(models, model, task.problem.weights_at))
    test = task.test.whole if isinstance(task.test, ByClient) else task.test
    if ranked := precision_recall.rows(models, task.judge, test):
        folder.write("precision-recall.csv", tables.as_csv(ranked))
    _export(folder, models, task, test)
    if task.notes:
        folder.write("notes.txt", "".join(f"{note}\n" for note in task.notes))
    return write_report(folder, record_of(folder), title_of(folder), folder.config()["rounds"])


MODELS: dict[str, Callable[[Trace], Tree]] = {
    "final": lambda trace: trace.last,
    "best": lambda trace: trace.best,
    "random": lambda trace: trace.output if trace.output_row else None,
}
"""The models that a run keeps, by file name; None where a run has no such model."""


def _export(folder: RunFolder, models: Sequence[tuple[str, int, Trace]], task: Task, test: Any) -> None:
    """Export the chosen model of every method (`fedcso.engines.choice`) to ONNX, with loading instructions.

    A model that is no network by itself, because it adapts to new data first, is exported as weights.
    """
    if test is None or not (task.judge.network or task.files):
        return
    record = record_of(folder)
    best = {(name, seed): trace.best for name, seed, trace in models}
    if task.judge.network is None:
        _export_weights(folder, {name: best[name, row["seed"]] for name, row in record.exported().items()}, task)
        return
    files = []
    for name, row in record.exported().items():
        try:
            exported = as_onnx(task.judge.network(best[name, row["seed"]], test))
        except FedcsoError as error:  # the other results must still be written
            log.warning("%s: %s", name, error)
            continue
        files.append(f"{name}.onnx")
        folder.write(f"models/{files[-1]}", exported)
    if files:
        for name, content in task.files.items():
            folder.write(f"models/{name}", content)
        loading = loading_example(files[0], "preparation.json" in task.files, record.statements())
        folder.write("models/LOADING.md", loading)


def _export_weights(folder: RunFolder, chosen: Mapping[str, Tree], task: Task) -> None:
    """Write the weights of models by method, and the files that say how to use them."""
    for name, content in task.files.items():
        folder.write(f"models/{name}", content)
    for name, model in chosen.items():
        weights = replace(InitialWeights.of(model), weights_at=task.problem.weights_at)
        folder.write(f"models/{name}.safetensors", weights.to_bytes())


def title_of(folder: RunFolder) -> str:
    """Return the title of a run."""
    clients = folder.environment()["data"].get("clients")
    return str(folder.config()["problem"]) + (f", {clients} clients" if clients else "")


def write_report(folder: RunFolder, record: Record, title: str, rounds: int | None = None) -> list[dict[str, Any]]:
    """Write the figures, tables and page of a record; return the table of results."""
    table = tables.results(record, rounds)
    write_table(folder, table)
    images = []
    for name, (figure, words) in draw(record, title).items():
        images.append((words, figures.render(figure, "png")))
        folder.write(f"{name}.png", images[-1][1])
        folder.write(f"{name}.pdf", figures.render(figure, "pdf"))
    notes = [*notes_in(folder), *_collapses(record)]
    more = {"Clients": tables.client_summary(record)}
    drawn = charts.charts(record)
    config, environment = folder.config(), folder.environment()
    html = page.page(title, images, table, config, environment, notes, more, drawn, record.statements())
    folder.write("report.html", html)
    return table


def draw(record: Record, title: str) -> dict[str, tuple[figures.Drawing, str]]:
    """Return the figures of a record with their captions, by name."""
    seeds = len({row["seed"] for row in record.rows})
    caption = f"Mean over {seeds} seeds with 95 % confidence bands." if seeds > 1 else "One seed."
    caption += " A star marks the exported model." if record.exported() else ""
    drawn = {"curves": (figures.curves(record, title), caption)}
    if record.ranked:
        words = "Precision and recall of the best iterates on the test data."
        drawn["precision-recall"] = precision_recall.figure(record.ranked), words
    return drawn


def notes_in(folder: RunFolder) -> list[str]:
    """Return what was noticed in the data and settings of a run."""
    kept = folder.path / "notes.txt"
    return kept.read_text().splitlines() if kept.is_file() else []


def _collapses(record: Record) -> list[str]:
    """Return a sentence about each run that collapsed."""
    runs: dict[tuple[str, Any], list[Row]] = {}
    for row in record.rows:
        runs.setdefault((row["algorithm"], row["seed"]), []).append(row)
    found = {run: collapse(evaluations, record.declared) for run, evaluations in runs.items()}
    return [f"{name}, seed {seed} {reason}" for (name, seed), reason in found.items() if reason]


def write_table(folder: RunFolder, table: Sequence[dict[str, Any]]) -> None:
    """Write table.csv, table.md and table.tex."""
    folder.write("table.csv", tables.as_csv(tables.flat(table)))
    folder.write("table.md", tables.as_markdown(table))
    folder.write("table.tex", tables.as_latex(table))


def _models(models: Sequence[tuple[str, int, Trace]], which: Callable[[Trace], Tree], weights_at: str) -> bytes:
    """Return the models of all runs as a safetensors file with names `algorithm/seed/leaf`."""
    tensors: dict[str, torch.Tensor] = {}
    for name, seed, trace in models:
        model = which(trace)
        for path, leaf in ({} if model is None else leaves_by_path(model)).items():
            tensors[f"{name}/{seed}/{path}"] = leaf.detach().cpu().contiguous().clone()
    return save_tensors(tensors, as_metadata(weights_at=weights_at))
