import pytest

from fedcso.cli.main import main
from tests.fitting.small_sites import search_little, table


@pytest.fixture
def patients(tmp_path, monkeypatch):
    search_little(monkeypatch)
    table(400).to_csv(tmp_path / "patients.csv", index=False)
    return str(tmp_path / "patients.csv")


def test_one_command_fits_and_its_folder_scores_new_rows_and_can_be_resumed(patients, tmp_path, capsys):
    out = tmp_path / "runs"
    options = ["--label", "ill", "--site", "hospital", "--net", "linear", "--precision", "0.3", "--out", str(out)]
    assert main(["fit", patients, *options]) == 0
    said = capsys.readouterr().out
    assert "The model was trained at 3 sites without moving their rows" in said
    (folder,) = out.glob("*_fit_*")
    assert f"fedcso predict {folder}" in said
    assert main(["resume", str(folder)]) == 0
    assert "The model was trained at 3 sites" in capsys.readouterr().out
    assert main(["predict", str(folder), patients]) == 0
    assert "probability" in capsys.readouterr().out
    assert main(["report", str(folder)]) == 2
    assert "is a fit, not a run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "data is missing"),
        (["nowhere.csv", "--label", "ill"], "nowhere.csv"),
        (["{table}"], "--label is missing"),
        (["{table}", "--label", "sick", "--site", "hospital"], "'sick'"),
        (["{table}", "--label", "kind", "--site", "hospital", "--positive", "z"], "positive"),
        (["{table}", "--label", "ill"], "--site is missing"),
        (["{table}", "--label", "ill", "--site", "hospital", "--minutes", "-1"], "minutes = -1"),
        (["{table}", "--label", "ill", "--site", "hospital", "--drop", "a,b,c,kind"], "no columns to learn from"),
        (["{table}", "--label", "ill", "--site", "hospital", "--minuets", "3"], "did you mean --minutes"),
        (["{table}", "--label", "a", "--site", "hospital"], "positive"),
    ],
)
def test_mistakes_are_named_with_exit_code_2(arguments, message, patients, tmp_path, capsys):
    given = [word.format(table=patients) for word in arguments]
    assert main(["fit", *given, *(["--out", str(tmp_path / "runs")] if given else [])]) == 2
    assert message in capsys.readouterr().err
    assert not list((tmp_path / "runs").glob("*"))
