"""What a program gets of a run: tables with numbers, figures, models, and HTML for notebooks."""

import re

import numpy as np
import pytest
import torch

import fedcso
from fedcso.core.intervals import mean_and_interval
from tests.command_line import run


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    small = {"rounds": 2, "local_steps": 2, "seeds": 3, "clients": 3, "out": place}
    return fedcso.run("nested_quadratic", ["FCSG", "FCSG-M"], **small)


def test_tables_have_numbers(found):
    last = found.metrics[(found.metrics["algorithm"] == "FCSG") & (found.metrics["round"] == 2)]
    mean, half = mean_and_interval(list(last["loss"]))
    row = found.table[(found.table["algorithm"] == "FCSG") & (found.table["iterate"] == "last")].iloc[0]
    assert (row["loss"], row["loss ±"]) == pytest.approx((mean, half))
    assert found.table["loss"].dtype == np.float64


def test_models_are_there_by_method_seed_and_iterate(found):
    task = fedcso.PROBLEMS["nested_quadratic"](clients=3)
    for seed in range(3):
        loss, _ = task.problem.exact(found.model("FCSG-M", seed, "final")["x"], task.clients, [1.0] * 3)
        rows = found.metrics.query("algorithm == 'FCSG-M' and seed == @seed")
        assert float(loss) == pytest.approx(rows["loss"].iloc[-1])
    assert torch.equal(found.model()["x"], found.model("FCSG", 0, "best")["x"])
    with pytest.raises(fedcso.UnknownName, match="unknown method 'SOX'"):
        found.model("SOX")
    with pytest.raises(fedcso.UnknownName, match="unknown seed '7'"):
        found.model(seed=7)
    with pytest.raises(fedcso.UnknownName, match="unknown model 'last'"):
        found.model(which="last")


def test_a_notebook_shows_the_table_and_the_curves(found):
    html = found._repr_html_()
    shown = re.findall(r"<td>([^<]*)</td>", html)
    assert "FCSG-M" in shown
    assert any(" ± " in cell for cell in shown)
    assert "data:image/png;base64,iVBOR" in html
    assert found.figure._repr_png_().startswith(b"\x89PNG")


def test_names_are_not_taken_for_html(tmp_path):
    folder = run("run", "nested_quadratic", "--algorithm", "FCSG", "--rounds", 1, "--seeds", 1, out=tmp_path)
    (folder / "metrics.csv").write_text((folder / "metrics.csv").read_text().replace("FCSG", "<b>FCSG"))
    assert "<b>" not in fedcso.load(folder)._repr_html_()


def test_a_comparison_shows_itself(found):
    compared = fedcso.compare(found)
    assert "within noise" in compared._repr_html_() or "clear" in compared._repr_html_()
    assert list(compared.table["algorithm"]) == ["FCSG", "FCSG-M"]


def test_folders_that_are_no_runs_are_named(tmp_path):
    with pytest.raises(fedcso.FedcsoError, match="is not a run folder"):
        fedcso.load(tmp_path)
    with pytest.raises(fedcso.InvalidValue, match="one or several run folders"):
        fedcso.compare()
