"""`fedcso run auprc` on a table of one's own, as banks or hospitals would: from a CSV file to a model to take away."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file, save

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.encoders import Preparation
from fedcso.reports import outputs
from fedcso.runs.config import RunConfig
from tests.command_line import (
    BAD_INPUT,
    BROKE_OFF,
    FINE,
    INTERRUPTED,
    assert_same_contents,
    call,
    folders,
    interrupt_after,
    read_csv,
    run,
    timeless,
    without_drawing,
    without_figures,
)

ROWS = 120
BANKS = ["east", "north", "south", "west"]
METHODS = ["FCSG-M", "Acc-FCSG-M"]


def banks(**changes) -> pd.DataFrame:
    """West has no fraud at all."""
    rng = np.random.default_rng(0)
    bank = np.repeat(BANKS, ROWS // 4)
    fraud = (rng.random(ROWS) < 0.3).astype(int)
    fraud[bank == "west"] = 0
    columns = {
        "amount": np.where(rng.random(ROWS) < 0.1, np.nan, rng.normal(50, 10, ROWS).round(2) + 8 * fraud),
        "kind": rng.choice(["card", "cash", "transfer"], ROWS),
        "bank": bank,
        "fraud": fraud,
    }
    return pd.DataFrame(columns | changes)


SMALL = ["--rounds", 2, "--local-steps", 2, "--outer-batch", 2, "--inner-batch", 4, "--evaluate-every", 1]
OWN = ["--data", "banks.csv", "--label", "fraud", "--site", "bank"]


def auprc(*options):
    return ["run", "auprc", *OWN, *SMALL, "--seeds", 1, "--algorithm", "FCSG-M", *options]


# ------------------------------------------------------------------------------------ one run with everything


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("bank")
    banks().to_csv(place / "banks.csv", index=False)
    return place


@pytest.fixture
def here(place, monkeypatch):
    """In the folder with the table."""
    monkeypatch.chdir(place)
    return place


@pytest.fixture(scope="module")
def finished(place):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        outcome = call("run", "auprc", *OWN, *SMALL, "--seeds", 2, "--algorithm", *METHODS, "--out", "runs")
    (folder,) = folders(place / "runs")
    (place / "said.txt").write_text(outcome.out)
    assert outcome.code == FINE, outcome.err
    return folder


def test_everything_is_there(finished):
    for name in ("curves.png", "precision-recall.png"):
        assert (finished / name).read_bytes().startswith(b"\x89PNG")
    for name in ("curves.pdf", "precision-recall.pdf"):
        assert (finished / name).read_bytes().startswith(b"%PDF")
    models = {path.name for path in (finished / "models").iterdir()}
    assert models == {"FCSG-M.onnx", "Acc-FCSG-M.onnx", "preparation.json", "LOADING.md"}
    assert json.loads((finished / "status.json").read_text()) == {"status": "done"}


def test_it_says_who_can_not_train(finished, place):
    said = (place / "said.txt").read_text()
    assert "note    site west takes part in evaluation only: 0 of its 18 training examples are positive" in said
    assert "site east" not in said


def test_the_clients_are_the_sites_with_what_they_measure(finished):
    rows = read_csv(finished / "clients.csv")
    assert [(row["algorithm"], row["seed"], row["client"]) for row in rows] == [
        (name, str(seed), bank) for name in METHODS for seed in range(2) for bank in BANKS
    ]
    for row in rows:
        assert row["size"] == "18"
        assert row["rounds"] == ("0" if row["client"] == "west" else "2")
        assert (row["average_precision"] == "undefined") == (row["client"] == "west")
        assert row["client"] == "west" or 0 < float(row["average_precision"]) <= 1


def chosen_row(folder, name, *seeds):
    """Return the evaluation of the model that validation data choose among those of some seeds."""
    rows = [row for row in read_csv(folder / "metrics.csv") if row["algorithm"] == name and row["seed"] in seeds]
    return max(rows, key=lambda row: float(row["validation_average_precision"]))


def test_metrics_are_numbers_and_the_mean_over_clients_leaves_out_the_undefined(finished):
    clients = [row for row in read_csv(finished / "clients.csv") if row["algorithm"] == "FCSG-M" and row["seed"] == "0"]
    defined = [float(row["average_precision"]) for row in clients if row["average_precision"] != "undefined"]
    chosen = chosen_row(finished, "FCSG-M", "0")
    assert float(chosen["client_average_precision"]) == pytest.approx(np.mean(defined))
    assert len(defined) == 3
    assert 0 < float(chosen["average_precision"]) <= 1
    assert float(chosen["prevalence"]) == pytest.approx(banks()["fraud"].mean(), abs=0.1)


def test_the_curve_has_its_points_for_every_run(finished):
    rows = read_csv(finished / "precision-recall.csv")
    assert {(row["algorithm"], row["seed"]) for row in rows} == {(name, str(s)) for name in METHODS for s in range(2)}
    assert all(0 < float(row["precision"]) <= 1 for row in rows)


def test_the_page_has_both_figures_and_a_table_of_the_clients(finished):
    page = (finished / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    table = page.partition("<h2>Clients</h2>")[2].partition("</table>")[0]
    lines = re.findall(r"<tr><td>(.*?)</td></tr>", table)
    assert [line.split("</td><td>")[0] for line in lines] == BANKS
    assert [line.count("undefined") for line in lines] == [0, 0, 0, 2]
    assert "average precision of FCSG-M" in table
    assert "site west takes part in evaluation only" in page


def test_the_page_says_how_many_clients_there_are(finished):
    title = re.search("<h1>(.*)</h1>", (finished / "report.html").read_text())[1]
    assert not re.search(r"\d", title) or "4 clients" in title


# ------------------------------------------------------------------------------------------- to take away


def new_rows() -> pd.DataFrame:
    """As they come: without a label, columns in another order, a gap, a kind never seen."""
    return pd.DataFrame(
        {"kind": ["cash", "cheque", None, "card"], "other": range(4), "amount": [40.0, 61.5, None, 1e4]}
    )


@pytest.mark.parametrize("name", METHODS)
def test_the_example_runs_as_it_stands_and_scores_as_the_network_does(finished, monkeypatch, name):
    monkeypatch.chdir(finished / "models")
    new_rows().to_csv("new.csv", index=False)
    (code,) = re.findall(r"```python\n(.*?)```", (finished / "models" / "LOADING.md").read_text(), re.DOTALL)
    assert "'FCSG-M.onnx'" in code
    found: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # a file is left to be closed by itself
        exec(code.replace("FCSG-M.onnx", f"{name}.onnx"), found)

    settings = yaml.safe_load((finished / "config.yaml").read_text()) | {"data": str(finished.parents[1] / "banks.csv")}
    task = RunConfig.from_flat(settings).task()
    saved = load_file(finished / "model-best.safetensors")
    seed = chosen_row(finished, name, "0", "1")["seed"]
    x = {key.split("/")[2]: value for key, value in saved.items() if key.startswith(f"{name}/{seed}/")}
    preparation = Preparation.from_json((finished / "models" / "preparation.json").read_text())
    expected = task.problem.scores.logits(x, preparation.apply(new_rows())).detach()
    assert len(set(expected.tolist())) == 4
    np.testing.assert_allclose(found["scores"].reshape(4), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_the_preparation_kept_is_that_of_the_training_data(finished, here):
    kept = Preparation.from_json((finished / "models" / "preparation.json").read_text())
    task = RunConfig.from_flat(yaml.safe_load((finished / "config.yaml").read_text())).task()
    frame = banks()
    mine = torch.cat([data.inputs for data in task.clients])
    assert kept.apply(frame).shape[1] == mine.shape[1]
    everything = {tuple(row) for row in kept.apply(frame).tolist()}
    assert {tuple(row) for row in mine.tolist()} <= everything


@pytest.fixture
def quick(here, monkeypatch):
    """Without the pictures, and without the export."""
    without_drawing(monkeypatch)
    monkeypatch.setattr(outputs, "as_onnx", lambda delivery: save(delivery.module.state_dict()))
    return here


def test_the_best_model_is_the_one_to_take_away(quick, tmp_path):
    folder = run(*auprc("--learning-rate", 30, "--rounds", 6), out=tmp_path)
    best, last = (load_file(folder / f"model-{which}.safetensors") for which in ("best", "final"))
    exported = load_file(folder / "models" / "FCSG-M.onnx")
    assert {f"FCSG-M/0/{name}" for name in exported} == best.keys()
    assert all(torch.equal(value, best[f"FCSG-M/0/{name}"]) for name, value in exported.items())
    assert not all(torch.equal(last[name], value) for name, value in best.items())


# ------------------------------------------------------------------------------------------ afterwards

MADE_ANEW = ["curves.png", "precision-recall.png", "table.csv", "table.md", "table.tex", "report.html"]


@pytest.fixture(scope="module")
def reported(finished, place):
    """What stood in the folder, and stands there after `fedcso report`."""
    before = {name: (finished / name).read_bytes() for name in MADE_ANEW}
    for name in MADE_ANEW:
        (finished / name).unlink()
    assert call("report", finished).code == FINE
    after = {name: (finished / name).read_bytes() for name in MADE_ANEW}
    for name, content in before.items():
        (finished / name).write_bytes(content)
    return before, after


@pytest.mark.parametrize("name", MADE_ANEW)
def test_the_report_can_be_made_again_as_it_was(reported, name):
    before, after = reported
    assert after[name] == before[name]


def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(quick, monkeypatch, tmp_path):
    whole = run(*auprc(), out=tmp_path / "whole")
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=1)
        stopped = run(*auprc(), out=tmp_path / "stopped", code=INTERRUPTED)
    assert not (stopped / "models").exists()
    assert call("resume", stopped).code == FINE
    for folder in (whole, stopped):  # where it lies is part of the settings
        for name in ("config.yaml", "report.html"):
            (folder / name).write_text((folder / name).read_text().replace(str(folder.parent), "…"))
    assert_same_contents(stopped, whole)
    for path in (whole / "models").iterdir():
        assert (stopped / "models" / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_run_is_not_resumed_on_other_data(quick, monkeypatch, tmp_path):
    banks().to_csv(tmp_path / "banks.csv", index=False)
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=1)
        folder = run(*auprc("--data", tmp_path / "banks.csv"), out=tmp_path / "runs", code=INTERRUPTED)
    banks(amount=np.arange(ROWS)).to_csv(tmp_path / "banks.csv", index=False)
    outcome = call("resume", folder)
    assert outcome.code == BAD_INPUT
    assert "was started with other data" in outcome.err


def test_what_a_killed_process_left_half_written_is_cleared_away(quick, tmp_path):
    folder = run(*auprc(), out=tmp_path)
    leftover = folder / "models" / ".FCSG-M.onnx.x1y2z3"
    leftover.write_bytes(b"half")
    assert call("resume", folder).code == FINE
    assert not leftover.exists()


# --------------------------------------------------------------------------------------- other ways to run


@pytest.mark.parametrize(
    ("problem", "methods"),
    [("auprc", ["SOAP", "SCAFFOLD"]), ("auroc", ["CODA+", "FedAvg"]), ("cross_entropy", ["FedAvg"])],
)
def test_every_objective_runs_on_ones_own_table(quick, tmp_path, problem, methods):
    options = [*OWN, *SMALL, "--seeds", 1, "--algorithm", *methods, "--clip", 1]
    folder = run("run", problem, *options, out=tmp_path)
    assert {row["algorithm"] for row in read_csv(folder / "metrics.csv")} == set(methods)
    assert {row["client"] for row in read_csv(folder / "clients.csv")} == set(BANKS)
    assert (folder / "models" / "preparation.json").exists()


@pytest.mark.parametrize("idle", BANKS[:2])
def test_it_does_not_matter_which_site_has_no_positives(quick, tmp_path, idle):
    frame = banks()
    frame.loc[frame["bank"] == idle, "fraud"] = 0
    frame.to_csv(tmp_path / "banks.csv", index=False)
    folder = run(*auprc("--data", tmp_path / "banks.csv"), out=tmp_path / "runs")
    assert {row["client"] for row in read_csv(folder / "clients.csv") if row["rounds"] == "0"} == {idle, "west"}


def test_a_site_with_a_row_or_two_trains_and_has_nothing_to_measure(quick, tmp_path):
    """Of five rows three are for training, the first among them; all the rest of the others stay as they are."""
    tiny = pd.DataFrame({"amount": [70.0, 30.0], "kind": ["card", "cash"], "bank": ["one", "two"], "fraud": [1, 0]})
    pd.concat([banks(), tiny]).to_csv(tmp_path / "banks.csv", index=False)
    folder = run(*auprc("--data", tmp_path / "banks.csv"), out=tmp_path / "runs")
    rows = {row["client"]: row for row in read_csv(folder / "clients.csv")}
    assert rows.keys() == {*BANKS, "one", "two"}
    assert [(rows[name]["size"], rows[name]["rounds"]) for name in ("one", "two")] == [("1", "2"), ("1", "0")]
    assert {rows[name]["average_precision"] for name in ("one", "two")} == {"undefined"}


def test_sites_may_be_called_by_numbers(quick, tmp_path):
    """Postal codes, say, which are no amounts."""
    codes = {"east": "10117", "north": "24103", "south": "80331", "west": "50667"}
    banks(bank=[codes[name] for name in banks()["bank"]]).to_csv(tmp_path / "banks.csv", index=False)
    folder = run(*auprc("--data", tmp_path / "banks.csv"), out=tmp_path / "runs")
    assert [row["client"] for row in read_csv(folder / "clients.csv")] == sorted(codes.values())
    table = (folder / "report.html").read_text().partition("<h2>Clients</h2>")[2]
    assert [code for code in codes.values() if f"<td>{code}</td>" in table] == list(codes.values())


def test_pooled_data_and_single_sites_are_judged_by_all_sites(quick, tmp_path):
    pooled = run(*auprc("--train-on", "pooled"), out=tmp_path / "pooled")
    alone = run(*auprc("--train-on", "north"), out=tmp_path / "alone")
    sizes = [{row["client"]: row["size"] for row in read_csv(folder / "clients.csv")} for folder in (pooled, alone)]
    assert sizes == [
        {"all": "72"} | dict.fromkeys(BANKS, "0"),
        {"north": "18"} | dict.fromkeys(set(BANKS) - {"north"}, "0"),
    ]
    sites = run(*auprc(), out=tmp_path / "sites")
    assert call("compare", sites, pooled, alone).code == FINE  # they are tested on the same data
    drawn = [{row["round"]: row["inner_samples"] for row in read_csv(one / "metrics.csv")} for one in (pooled, sites)]
    assert drawn[0] == drawn[1]
    for folder in (pooled, alone):
        judged = {row["client"]: row["average_precision"] for row in read_csv(folder / "clients.csv")}
        assert [bank for bank in BANKS if judged[bank] == "undefined"] == ["west"]


def test_sites_count_by_their_rows_unless_told_otherwise(quick, tmp_path):
    table = pd.concat([banks(), banks(bank=["east"] * len(banks()))])
    table.to_csv(tmp_path / "banks.csv", index=False)
    command = [*auprc("--data", tmp_path / "banks.csv"), "--out", tmp_path / "runs"]
    told, sized, uniform = (call(*command, *more) for more in ([], BY_SIZE, EQUALLY))
    note = "sites count by the number of their training rows"
    assert [note in outcome.out for outcome in (told, sized, uniform)] == [True, False, False]
    rows = [timeless(read_csv(folder / "metrics.csv")) for folder in folders(tmp_path / "runs")]
    assert rows[0] == rows[1] != rows[2]


BY_SIZE, EQUALLY = ["--weights", "size"], ["--weights", "uniform"]


def test_a_network_that_can_not_be_exported_does_not_cost_the_results(quick, monkeypatch, tmp_path):
    def refuse(delivery):
        raise FedcsoError("the network can't be exported to ONNX: for a reason")

    monkeypatch.setattr(outputs, "as_onnx", refuse)
    outcome = call(*auprc(), "--out", tmp_path)
    (folder,) = folders(tmp_path)
    assert "for a reason" in outcome.err + outcome.out
    assert (folder / "report.html").exists()
    assert json.loads((folder / "status.json").read_text())["status"] == "done"


def test_a_model_whose_scores_overflow_is_told_without_a_traceback(quick, tmp_path):
    """After one step its weights are finite, but not the product of two layers; the next step has no loss."""
    outcome = call(*auprc("--net", "mlp", "--learning-rate", "1e30", "--local-steps", 1), "--out", tmp_path)
    assert outcome.code == BROKE_OFF
    assert "failed: non-finite loss" in outcome.err


# --------------------------------------------------------------------------- tables as people have them


def as_people_have_them() -> pd.DataFrame:
    """Identifiers, dates, yes and no, and a few rows without a label."""
    rng = np.random.default_rng(1)
    days = pd.to_datetime("2021-01-01") + pd.to_timedelta(rng.integers(0, 700, ROWS), "D")
    return banks(
        customer_id=rng.permutation(ROWS) + 7000,
        opened=days.strftime("%d.%m.%Y"),
        abroad=rng.choice(["yes", "no"], ROWS),
        fraud=np.where(np.arange(ROWS) % 40 == 0, np.nan, banks()["fraud"]),
    )


def test_a_german_table_is_trained_on_and_new_rows_are_scored_as_they_come(place, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    as_people_have_them().to_csv("banks.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    with monkeypatch.context() as patch:
        without_figures(patch)
        outcome = call(*auprc("--out", "runs"))
    assert outcome.code == FINE, outcome.err
    assert "customer_id: left out, because it looks like an identifier" in outcome.out
    assert "rows without a label in column 'fraud' are left out: 3" in outcome.out
    (folder,) = folders(tmp_path / "runs")
    preparation = Preparation.from_json((folder / "models" / "preparation.json").read_text())
    assert {"opened weekday", "opened days since 2000-01-01", "abroad"} <= set(preparation.names)
    monkeypatch.chdir(folder / "models")
    with open("new.csv", "w") as file:
        file.write("kind;amount;abroad;opened\ncash;1.040,5;yes;1.2.2022\ncard;61,25;no;\n")
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "models" / "LOADING.md").read_text(), re.DOTALL)
    found: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # a file is left to be closed by itself
        exec(code, found)
    rows = pd.DataFrame({"kind": ["cash", "card"], "amount": [1040.5, 61.25], "abroad": [1, 0]})
    expected = preparation.apply(rows.assign(opened=pd.to_datetime(["2022-02-01", None])))
    assert torch.equal(found["rows"], expected)
    assert np.isfinite(found["scores"]).all()


def test_pictures_of_ones_own_are_trained_on_by_a_network_of_ones_own(quick, tmp_path):
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (60, 3, 16, 16), dtype=np.uint8)
    np.savez(tmp_path / "scans.npz", X=pictures, ill=np.arange(60) % 3 == 0, hospital=np.repeat(["a", "b", "c"], 20))
    (tmp_path / "net.py").write_text(
        "from torch import nn\n"
        "class Small(nn.Sequential):\n"
        "    def __init__(self):\n"
        "        super().__init__(nn.Conv2d(3, 4, 3, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 1))\n"
    )
    own = ["--data", tmp_path / "scans.npz", "--label", "ill", "--site", "hospital", "--mirrored", "true", "--moved", 1]
    folder = run(*auprc(*own, "--net", f"{tmp_path / 'net.py'}:Small"), out=tmp_path / "runs")
    assert {row["client"] for row in read_csv(folder / "clients.csv")} == {"a", "b", "c"}
    model = load_file(folder / "model-best.safetensors")
    assert model["FCSG-M/0/0.weight"].shape == (4, 3, 3, 3)
    chosen = run(*auprc(*own), out=tmp_path / "auto")
    assert load_file(chosen / "model-best.safetensors")["FCSG-M/0/0.weight"].shape == (16, 3, 3, 3)


def test_one_site_is_trained_on_with_a_note(quick, tmp_path):
    banks(bank=["east"] * ROWS).to_csv(tmp_path / "one.csv", index=False)
    outcome = call(*auprc("--data", tmp_path / "one.csv", "--out", tmp_path / "runs"))
    assert outcome.code == FINE, outcome.err
    assert "all rows are at one site, 'east': this is training in one place" in outcome.out


# ------------------------------------------------------------------------------------------- mistakes

TABLES = {
    "three.csv": banks(fraud=np.arange(ROWS) % 3),
    "none.csv": banks(fraud=np.zeros(ROWS, dtype=int)),
    "infinite.csv": banks(amount=[np.inf, *range(ROWS - 1)]),
    "nowhere.csv": banks(bank=[None, *(["east", "west"] * ROWS)][:ROWS]),
    "dates.csv": banks(amount=["2024-01-31", "2024-02-30"] * (ROWS // 2)),
    "banks.csv": banks(),
}
FILES = {
    "banks.xls": b"PK",
    "banks.txt": b"a b c",
    "empty.csv": b"",
    "binary.csv": b"\xff\xfe\x00\x01\n",
    "broken.parquet": b"PAR",
}


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory):
    place = tmp_path_factory.mktemp("mistakes")
    for name, table in TABLES.items():
        table.to_csv(place / name, index=False)
    for name, content in FILES.items():
        (place / name).write_bytes(content)
    return place


def of(name, *options, label="fraud", site="bank"):
    columns = [*(["--label", label] if label else []), *(["--site", site] if site else [])]
    return ["--data", name, *columns, *options]


MISTAKES = {
    "three values": (of("three.csv"), ["'fraud' has 3 values", "'0', '1', '2'", "--positive"]),
    "no positives": (of("none.csv"), ["'fraud' holds only '0'", "positive and negative"]),
    "an infinite number": (
        of("infinite.csv"),
        ["'amount'", "'inf' in row 1", "infinite.csv", "finite", "--drop amount"],
    ),
    "a site that is missing": (of("nowhere.csv"), ["'bank' has no value in row 1"]),
    "a date that is none": (of("dates.csv"), ["'amount' holds '2024-02-30' in row 2", "--drop amount"]),
    "another kind of file": (of("banks.xls"), ["banks.xls", ".csv, .csv.gz", ".parquet, .npz", "save it as"]),
    "a column to drop that is not there": (of("banks.csv", "--drop", "amuont"), ["'amuont'", "did you mean amount?"]),
    "a column to use that is not there": (of("banks.csv", "--columns", "knid"), ["'knid'", "did you mean kind?"]),
    "the label dropped": (of("banks.csv", "--drop", "fraud"), ["drop = 'fraud'", "the label"]),
    "all columns dropped": (of("banks.csv", "--drop", "amount,kind"), ["no columns to learn from", "--drop"]),
    "rows in a mirror": (of("banks.csv", "--mirrored", "true"), ["mirrored", "other than pictures"]),
    "plain text": (of("banks.txt"), ["banks.txt", ".csv"]),
    "an empty file": (of("empty.csv"), ["empty.csv is empty"]),
    "a file that is no text": (of("binary.csv"), ["binary.csv is not text"]),
    "a file that is no Parquet": (of("broken.parquet"), ["broken.parquet can't be read"]),
    "no such file": (of("missing.csv"), ["missing.csv"]),
    "no such data": (of("digitz", label="", site=""), ["unknown data 'digitz'", "did you mean digits?"]),
    "no label": (of("banks.csv", label=""), ["--label is missing", "amount, kind, bank, fraud"]),
    "no such label": (of("banks.csv", label="frod"), ["unknown column of banks.csv 'frod'", "did you mean fraud?"]),
    "no site": (
        of("banks.csv", site=""),
        ["--site is missing", "says where each row belongs", "one file for each site"],
    ),
    "no such site column": (of("banks.csv", site="banc"), ["unknown column of banks.csv 'banc'", "did you mean bank?"]),
    "label and site in one": (of("banks.csv", site="fraud"), ["site = 'fraud'", "another column"]),
    "no such positive": (of("banks.csv", "--positive", "2"), ["positive = ", "'0', '1'"]),
    "no such site": (of("banks.csv", "--train-on", "wets"), ["unknown train_on 'wets'", "did you mean west?"]),
    "a site that can't train": (of("banks.csv", "--train-on", "west"), ["with training data"]),
    "rows for the network of pictures": (of("banks.csv", "--net", "mnist"), ["'mnist'", "1×28×28", "must be mlp"]),
    "small pictures for it": (["--data", "digits", "--net", "mnist"], ["net = 'mnist'", "1×28×28", "64"]),
    "small pictures for the other": (["--data", "digits", "--net", "cifar"], ["net = 'cifar'", "3×32×32", "64"]),
    "no such network": (of("banks.csv", "--net", "mpl"), ["unknown net 'mpl'", "did you mean mlp?"]),
    "no margin": (of("banks.csv", "--margin", "0"), ["margin = 0", "above 0"]),
    "itself less than never": (of("banks.csv", "--itself=-1"), ["itself = -1", "at least 0"]),
    "all positives removed": (["--removed", "1.0"], ["removed = 1.0", "[0, 1)"]),
    "a digit that is none": (["--positive", "11"], ["positive = ", "of the labels there are"]),
    "more sites than can train": (
        of("banks.csv", "--participation", "4"),
        ["participation = 4", "at most 3, the number of clients"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line_and_leaves_no_folder(mistaken, monkeypatch, mistake):
    monkeypatch.chdir(mistaken)
    arguments, says = MISTAKES[mistake]
    outcome = call("run", "auprc", *SMALL, *arguments)
    assert outcome.code == BAD_INPUT, outcome
    assert outcome.err.startswith("fedcso: ")
    assert outcome.err.count("\n") == 1, outcome.err
    for fragment in says:
        assert fragment in outcome.err
    assert "Traceback" not in outcome.err
    assert folders(mistaken / "runs") == []


def test_positives_are_taken_by_name(quick, tmp_path):
    banks(fraud=np.array(["no", "yes", "maybe"])[np.arange(ROWS) % 3]).to_csv(tmp_path / "words.csv", index=False)
    folder = run(*auprc("--data", tmp_path / "words.csv", "--positive", "yes,maybe"), out=tmp_path / "runs")
    assert float(read_csv(folder / "metrics.csv")[-1]["prevalence"]) == pytest.approx(2 / 3, abs=0.1)
