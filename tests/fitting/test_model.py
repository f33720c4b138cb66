"""The exported model scores rows as fedcso does, in a Python that has neither fedcso nor torch."""

import io
import json

import numpy as np
import pandas as pd
import pytest
import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import Network
from fedcso.fitting.model import COPIED, PACKAGE, write_model
from fedcso.reports.calibration import isotonic, platt
from tests.fitting.bare_python import link_packages, run_bare
from tests.fitting.exported_models import messy, picture_model, table_model

pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'fedcso[predict]'")


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    return link_packages(tmp_path_factory.mktemp("bare") / "packages")


@pytest.fixture
def exported():
    return table_model()


@pytest.fixture
def of_pictures():
    return picture_model()


def test_the_environment_has_neither_fedcso_nor_torch(packages, tmp_path):
    for name in ("fedcso", "torch", "sklearn", "scipy"):
        tried = run_bare(packages, "-c", f"import {name}", cwd=tmp_path)
        assert f"No module named '{name}'" in tried.stderr
    assert run_bare(packages, "-c", "import numpy, pandas, onnxruntime", cwd=tmp_path).returncode == 0


def assert_same_probabilities(found, exported, own):
    """Compare with fedcso's own scores and probabilities to 1e-6.

    Scores of onnxruntime and of torch differ in the last bit of float32. Between two steps of isotonic regression the
    probability rises steeply, and the difference grows by that slope, which is allowed for.
    """
    scores, probabilities = own
    rounding = 4 * np.finfo(np.float32).eps * np.maximum(np.abs(scores), 1)
    low, high = (exported.calibration.apply(scores + sign * rounding) for sign in (-1, 1))
    allowed = 1e-6 + (np.maximum(high - probabilities, probabilities - low) if exported.fit is isotonic else 0)
    assert (np.abs(np.asarray(found) - probabilities) <= allowed).all()


def german(frame):
    """Semicolons, decimal commas, points between thousands."""
    text = frame.assign(dose=frame.dose.map(lambda dose: f"{dose:,.2f}".translate(str.maketrans(",.", ".,"))))
    return text.to_csv(index=False, sep=";").encode()


WRITTEN = {
    "plain.csv": lambda frame: frame.to_csv(index=False).encode(),
    "german.csv": german,
    "tabs.tsv": lambda frame: frame.to_csv(index=False, sep="\t").encode("utf-16"),
    "quoted.csv": lambda frame: frame.to_csv(index=False, quoting=1).encode(),
    "one-row.csv": lambda frame: frame.head(1).to_csv(index=False).encode(),
    "other-order.csv": lambda frame: frame[frame.columns[::-1]].to_csv(index=False).encode(),
    "iso-dates.csv": lambda frame: (
        frame.assign(seen=pd.to_datetime(frame.seen, dayfirst=True)).to_csv(index=False).encode()
    ),
    "true.csv": lambda frame: frame.assign(smoker=frame.smoker == "yes").to_csv(index=False).encode(),
    "unknown.csv": lambda frame: frame.assign(sex="x", ward="Z9", smoker=None).to_csv(index=False).encode(),
}

SCORE_ALL = """
import json, sys
from predict import Model
model = Model(".")
print(json.dumps({file: model.score_file(file).rows["probability"].tolist() for file in sys.argv[1:]}))
assert not {"torch", "fedcso"} & set(sys.modules)
"""


@pytest.mark.parametrize("fit", [platt, isotonic], ids=["platt", "isotonic"])
def test_it_gives_fedcsos_probabilities_for_all_kinds_of_tables(fit, packages, tmp_path):
    exported = table_model(fit)
    files = {name: tmp_path / name for name in WRITTEN}
    for name, file in files.items():
        file.write_bytes(WRITTEN[name](messy(50, seed=7)))
    done = run_bare(packages, "-c", SCORE_ALL, *files.values(), cwd=exported.path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    plain = found[str(files["plain.csv"])]
    for name in set(files) - {"one-row.csv"}:
        assert_same_probabilities(found[str(files[name])], exported, exported.own_of_file(files[name]))
    # All these files but two hold the same rows: what is read must not depend on how they are written.
    for name in set(files) - {"one-row.csv", "unknown.csv"}:
        np.testing.assert_allclose(found[str(files[name])], plain, atol=1e-7, rtol=0)
    assert messy(50, seed=7).ward[0] == "007"  # which is the number 7 unless one knows the training rows
    np.testing.assert_allclose(found[str(files["one-row.csv"])], plain[:1], atol=1e-7, rtol=0)
    assert np.ptp(plain) > 0.1


def test_the_script_prints_the_rows_with_probabilities_and_alerts(exported, packages, tmp_path):
    file = tmp_path / "new.csv"
    frame = messy(40, seed=3).assign(patient=[f"{n:04}" for n in range(40)])
    frame.to_csv(file, index=False)
    done = run_bare(packages, exported.path / "predict.py", file, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    scored = pd.read_csv(io.StringIO(done.stdout), dtype={"patient": str, "ward": str})
    assert scored.patient.tolist() == frame.patient.tolist()  # with its zeros
    assert scored.ward.tolist() == frame.ward.tolist()
    scores, probabilities = exported.own_of_file(file)
    assert_same_probabilities(scored.probability, exported, (scores, probabilities))
    for threshold, column in zip(exported.thresholds, list(scored.columns)[-2:], strict=True):
        assert column == "alert_" + threshold.wanted.replace(" ", "_")
        assert scored[column].tolist() == (scores.astype(np.float64) >= threshold.score).astype(int).tolist()
        assert 0 < scored[column].sum() < len(scored)


def test_the_script_works_where_python_ignores_its_folder(exported, packages, tmp_path):
    messy(5).to_csv(tmp_path / "new.csv", index=False)
    done = run_bare(packages, "-P", exported.path / "predict.py", tmp_path / "new.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_script_says_what_is_wrong(exported, packages, tmp_path):
    done = run_bare(packages, exported.path / "predict.py", tmp_path / "none.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"predict.py: there is no file {tmp_path / 'none.csv'}\n"
    messy(5).to_csv(tmp_path / "new.csv", index=False)
    nowhere = tmp_path / "no folder" / "scored.csv"
    done = run_bare(packages, exported.path / "predict.py", tmp_path / "new.csv", "--out", nowhere, cwd=tmp_path)
    assert done.returncode == 1
    assert "no folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_pictures_are_scored_from_npz(of_pictures, packages, tmp_path):
    pictures = np.random.default_rng(5).integers(0, 256, (9, 1, 16, 16), dtype=np.uint8)
    np.savez(tmp_path / "new.npz", pictures=pictures)
    done = run_bare(packages, of_pictures.path / "predict.py", tmp_path / "new.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    scored = pd.read_csv(io.StringIO(done.stdout))
    np.testing.assert_allclose(scored.probability, of_pictures.own(torch.from_numpy(pictures))[1], atol=1e-6, rtol=0)


def test_the_readme_says_how_to_use_it(exported, of_pictures):
    text = (exported.path / "README.md").read_text()
    assert "python predict.py new.csv > scored.csv" in text
    assert "age, dose, sex, ward, smoker, seen" in text
    assert "- method: FCSG-M" in text
    assert "`alert_recall_0.8`: 1 for an alert" in text
    assert "python predict.py new.npz" in (of_pictures.path / "README.md").read_text()


def test_copies_import_nothing_of_fedcso(exported):
    copies = {file.stem: file.read_text() for file in (exported.path / PACKAGE).glob("*.py")}
    assert set(copies) == {"__init__", *(module.rpartition(".")[2] for module in COPIED)}
    for text in copies.values():
        assert "import fedcso" not in text
        assert "from fedcso" not in text


def test_a_table_without_preparation_is_refused(exported, tmp_path):
    network = Network(torch.nn.Linear(3, 1), torch.zeros(2, 3))
    with pytest.raises(FedcsoError, match="without their preparation"):
        write_model(tmp_path, network, exported.calibration, None, [], {})
