"""Rows, estimates and tables."""

import csv
import io
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.costs import Costs
from fedcso.core.errors import NonFinite
from fedcso.core.judge import ByClient
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.reports import tables
from fedcso.reports.recorded import Record
from fedcso.reports.tables import Estimate
from tests import helpers
from tests.declared import CLASSIFIED, RANKED

T_95 = {2: 12.706204736432095, 3: 4.302652729911275}
"""Student's t for a two-sided interval of 95 % by the number of values."""


def row(algorithm="A", seed=0, round=1, **metrics):
    return (
        {"algorithm": algorithm, "seed": seed, "round": round, **metrics}
        | Costs(2, 6, 3, 1, 40, 8).as_dict()
        | {"seconds": 0.5 + seed}
    )


# ------------------------------------------------------------------------------------------ summary


def test_a_summary_is_the_mean_over_seeds_of_the_last_evaluation():
    rows = [row(seed=seed, round=r, loss=10.0 * seed + r) for seed in range(3) for r in (0, 1, 2)]
    (line,) = tables.summary(Record(rows))
    assert line["seeds"] == 3
    assert line["rounds"] == 2
    assert line["loss"].mean == pytest.approx(12.0)
    assert line["loss"].half_width == pytest.approx(T_95[3] * 10 / math.sqrt(3))


def test_a_summary_counts_the_costs_of_one_run():
    (line,) = tables.summary(Record([row(seed=0, loss=1.0), row(seed=1, loss=1.0)]))
    assert [line[name] for name in ("samples ξ", "samples η", "gradients", "bytes sent")] == [2, 6, 3, 48]
    assert line["seconds"] == 1.5  # the runs go in step, so the longest


def test_one_seed_has_no_interval():
    (line,) = tables.summary(Record([row(loss=1.5)]))
    assert line["loss"].mean == 1.5
    assert math.isnan(line["loss"].half_width)


def test_methods_keep_their_order_and_metrics_theirs():
    rows = [row("Z", loss=1.0, train_loss=2.0, accuracy=0.5), row("A", loss=1.0, train_loss=2.0, accuracy=0.5)]
    lines = tables.summary(Record(rows, CLASSIFIED))
    assert [line["algorithm"] for line in lines] == ["Z", "A"]
    assert list(lines[0])[:5] == ["algorithm", "seeds", "accuracy", "loss", "train_loss"]


def test_a_metric_that_only_some_methods_have_is_left_out_for_the_others():
    lines = tables.summary(
        Record([row("A", accuracy=0.5, loss=1.0), row("B", accuracy="", loss=1.0), row("C", loss=1.0)])
    )
    assert ["accuracy" in line for line in lines] == [True, False, False]


def test_runs_that_broke_off_are_counted():
    rows = [row("A", 0, 5, loss=1.0), row("A", 1, 5, loss=1.0), row("B", 0, 5, loss=1.0), row("B", 1, 2, loss=9.0)]
    lines = tables.summary(Record(rows))
    assert "broke off" not in lines[0]
    assert lines[1]["broke off"] == 1


# ------------------------------------------------------------------------------- the iterates of a run


def ranked(seed, round, precision, validated):
    return row(seed=seed, round=round, average_precision=precision, validation_average_precision=validated)


ITERATES = Record(
    [
        *(ranked(0, 0, 0.1, 0.1), ranked(0, 4, 0.5, 0.9), ranked(0, 8, 0.6, 0.3)),
        *(ranked(1, 0, 0.1, 0.1), ranked(1, 4, 0.9, 0.2), ranked(1, 8, 0.7, 0.4)),
    ],
    RANKED,
    random=[{"algorithm": "A", "seed": s, "round": 3, "step": 25, "average_precision": 0.2 + s} for s in (0, 1)],
)
"""Validation data choose round 4 of the first seed and round 8 of the second; test data would choose otherwise."""


def test_results_have_a_line_for_the_last_the_best_and_the_random_iterate():
    lines = tables.results(ITERATES)
    assert [(line["algorithm"], line["iterate"], line["seeds"]) for line in lines] == [
        ("A", iterate, 2) for iterate in ("last", "best", "random")
    ]
    assert [line["average_precision"].mean for line in lines] == pytest.approx([0.65, 0.6, 0.7])
    assert [line["validation_average_precision"].mean for line in lines[:2]] == pytest.approx([0.35, 0.65])
    assert [line["rounds"] for line in lines] == [8, 6, 3]


def test_what_is_not_known_of_an_iterate_is_left_out():
    _, _, random = tables.results(ITERATES)
    assert set(random) == {"algorithm", "iterate", "seeds", "average_precision", "rounds"}


def test_without_a_random_or_a_chosen_iterate_there_is_no_line_of_it():
    assert [line["iterate"] for line in tables.results(Record(ITERATES.rows, RANKED))] == ["last", "best"]
    assert [line["iterate"] for line in tables.results(Record(ITERATES.rows))] == ["last"]


def test_runs_that_broke_off_are_counted_for_every_iterate():
    short = Record([row for row in ITERATES.rows if row["seed"] == 0 or row["round"] < 8], RANKED, ITERATES.random)
    assert [line["broke off"] for line in tables.results(short)] == [1, 1, 1]


# ------------------------------------------------------------------------------------------- cells

TEXTS = {
    Estimate(0.5, 0.25): "0.5000 ± 0.2500",
    Estimate(-0.5, 0.25): "-0.5000 ± 0.2500",
    Estimate(0.0, 0.0): "0.0000 ± 0.0000",
    Estimate(0.001, math.nan): "0.0010",
    Estimate(9999.0, 1.0): "9999.0000 ± 1.0000",
    Estimate(12345.0, 1.0): "1.234e+04 ± 1.000e+00",
    Estimate(0.00012, 0.00001): "1.200e-04 ± 1.000e-05",
    Estimate(math.nan, math.nan): "–",
    Estimate(math.inf, math.nan): "inf",
}


@pytest.mark.parametrize("estimate", TEXTS)
def test_an_estimate_is_written_with_as_many_digits_as_help(estimate):
    assert str(estimate) == TEXTS[estimate]


CELLS = [(3, "3"), (1234567, "1\u202f234\u202f567"), (0.256, "0.26"), ("", ""), (Estimate(0.5, 0.1), "0.5000 ± 0.1000")]


@pytest.mark.parametrize(("value", "text"), CELLS)
def test_a_cell_is_for_people(value, text):
    assert tables.cell(value) == text


# ------------------------------------------------------------------------------------------ tables

TABLE = [
    {"algorithm": "FCSG-M(learning_rate=cosine(0.1, 5), momentum=0.5)", "loss": Estimate(0.5, 0.1), "samples ξ": 12345},
    {"algorithm": "100%_#1", "broke off": 2, "loss": Estimate(math.nan, math.nan), "samples ξ": 0},
]


def test_markdown_has_as_many_cells_in_every_line():
    head, rule, *lines = tables.as_markdown(TABLE).splitlines()
    assert len(lines) == len(TABLE)
    assert all(line.startswith("|") and line.endswith("|") for line in (head, rule, *lines))
    assert {line.count("|") for line in (head, rule, *lines)} == {5}
    assert re.fullmatch(r"\| --- (\| ---: )+\|", rule)


def test_latex_has_as_many_cells_in_every_line():
    first, top, head, mid, *lines, bottom, last = tables.as_latex(TABLE).splitlines()
    assert first == r"\begin{tabular}{lrrr}"
    assert (top, mid, bottom, last) == (r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}")
    for line in (head, *lines):
        assert line.endswith(r" \\")
        assert len(re.findall(r"(?<!\\)&", line)) == 3


def test_latex_escapes_what_means_something_to_it():
    text = tables.as_latex(TABLE)
    assert r"0.5000 $\pm$ 0.1000" in text
    assert r"samples $\xi$" in text
    assert r"learning\_rate" in text
    assert r"12\,345" in text
    assert r"100\%\_\#1 & " in text


def test_latex_is_plain_ascii():
    assert tables.as_latex(TABLE).isascii()


names = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=8)
cells = st.floats(allow_nan=False) | st.integers() | names


@given(st.lists(st.dictionaries(names, cells, min_size=1, max_size=4), min_size=1, max_size=4))
def test_csv_comes_back_as_it_was(rows):
    back = list(csv.DictReader(io.StringIO(tables.as_csv(rows))))
    columns = list(dict.fromkeys(key for one in rows for key in one))
    assert [list(one) for one in back] == [columns] * len(rows)
    for one, other in zip(back, rows, strict=True):
        for key in columns:
            value = other.get(key, "")
            assert one[key] == str(value)
            if isinstance(value, float):
                assert float(one[key]) == value


def test_the_table_for_machines_has_two_columns_for_an_estimate():
    assert tables.flat([{"algorithm": "A", "loss": Estimate(0.5, 0.1), "rounds": 3}]) == [
        {"algorithm": "A", "loss": 0.5, "loss ±": 0.1, "rounds": 3}
    ]


# -------------------------------------------------------------------------------- from traces to rows


def trace(*losses, **fields):
    return Trace(rows=[{"round": r, "loss": loss} for r, loss in enumerate(losses)], **fields)


def test_metrics_have_a_row_per_run_and_evaluation():
    rows = tables.metric_rows({"A": [[trace(1.0, 0.5), trace(2.0)]], "B": [[trace(3.0), trace(4.0)]]}, [5, 6])
    assert rows == [
        {"algorithm": "A", "seed": 5, "round": 0, "loss": 1.0},
        {"algorithm": "A", "seed": 5, "round": 1, "loss": 0.5},
        {"algorithm": "A", "seed": 6, "round": 0, "loss": 2.0},
        {"algorithm": "B", "seed": 5, "round": 0, "loss": 3.0},
        {"algorithm": "B", "seed": 6, "round": 0, "loss": 4.0},
    ]


def test_settings_of_one_unit_are_numbered():
    found = {"A": [[trace(1.0)], [trace(2.0)]]}
    assert [name for name, _, _ in tables.runs(found, [0])] == ["A#0", "A#1"]


def test_clients_have_their_sizes_rounds_and_faults():
    case = helpers.classification(sizes=(3, 7))
    fault = NonFinite("loss", client=1, round=0, step=0, seed=0)
    found = {"A": [[trace(1.0, participation=[2, 1], dropped=[fault, fault])]]}
    rows = tables.client_rows(found, [4], Task(case.problem, case.clients), lambda run: run.last)
    assert [(r["seed"], int(r["client"]), r["size"], r["rounds"], r["dropped"]) for r in rows] == [
        (4, 0, 3, 2, 0),
        (4, 1, 7, 1, 2),
    ]


def test_random_iterates_have_a_row_per_run_that_met_one():
    met, not_met = trace(1.0, output_row={"round": 2, "step": 5, "loss": 0.7}), trace(1.0)
    rows = tables.random_rows({"A": [[met, not_met]], "B": [[met]]}, [5, 6])
    assert rows == [{"algorithm": name, "seed": 5, "round": 2, "step": 5, "loss": 0.7} for name in "AB"]


# --------------------------------------------------------------------------------- measured by clients


def measured(model, test=None):
    """Two runs of a linear model, judged by three clients at home."""
    case = helpers.classification(sizes=(3, 7, 12))
    models = [case.problem.init(stream(seed, 0, 0)) for seed in range(2)]
    at_home = [helpers.classification(sizes=(size,)).clients[0] for size in (4, 8, 16)]
    task = replace(case, test=ByClient(case.test, at_home) if test is None else test)
    zero = case.problem.init(stream(9, 0, 0))
    found = {"A": [[trace(1.0, participation=[1, 1, 1], best=x, last=zero) for x in models]]}
    expected = [case.judge.evaluate(x, data) for x in models for data in at_home]
    return tables.client_rows(found, [4, 5], task, model), expected


def test_clients_measure_the_model_that_is_asked_for_at_home():
    rows, expected = measured(lambda run: run.best)
    assert [list(row) for row in rows] == [
        ["algorithm", "seed", "client", "size", "rounds", "dropped", "loss", "accuracy"]
    ] * 6
    assert [(row["seed"], int(row["client"])) for row in rows] == [(seed, n) for seed in (4, 5) for n in range(3)]
    for row, metrics in zip(rows, expected, strict=True):
        assert (row["loss"], row["accuracy"]) == (metrics["loss"].item(), metrics["accuracy"].item())
    assert len({row["loss"] for row in rows}) == 6
    others, _ = measured(lambda run: run.last)
    assert all(one["loss"] != other["loss"] for one, other in zip(rows, others, strict=True))


def test_clients_measure_nothing_before_the_end_or_without_data_of_their_own():
    assert "loss" not in measured(None)[0][0]
    assert "loss" not in measured(lambda run: run.best, helpers.classification().test)[0][0]
