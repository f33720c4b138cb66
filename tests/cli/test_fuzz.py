"""Whatever comes in, a mistake is told in words: never a traceback, never a hang, and no file is lost.

Each test tries some dozens of cases; `FEDCSO_FUZZ=50 pytest tests/test_fuzz.py` tries fifty times as many.
"""

import io
import os
import zipfile

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedcso.algorithms import ALGORITHMS
from fedcso.cli.main import COMMANDS
from fedcso.core.errors import FedcsoError
from fedcso.datasets.cifar10_pickle import to_records
from fedcso.datasets.fetch.archives import read_file, read_members
from fedcso.datasets.mnist import FILES, decode
from fedcso.datasets.omniglot import read
from fedcso.datasets.tables.sites import load_sites
from fedcso.problems import PROBLEMS
from fedcso.runs import checkpoint
from tests.command_line import BAD_INPUT, BROKE_OFF, FINE, QUADRATIC, call, run, without_drawing

TIMES = float(os.environ.get("FEDCSO_FUZZ", "1"))


def cases(number):
    return settings(
        max_examples=int(number * TIMES), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_told(outcome):
    """It worked, or one line says why not."""
    assert outcome.code in (FINE, BROKE_OFF, BAD_INPUT), outcome
    assert "Traceback" not in outcome.err
    if outcome.code == BAD_INPUT:
        assert outcome.err.startswith("fedcso: ")


def told(attempt, *must_name):
    """Carry out something that may be refused, in words."""
    try:
        attempt()
    except FedcsoError as error:
        refusal = str(error)
    else:
        return
    assert refusal
    assert all(word in refusal for word in must_name)


def spoilt(good):
    """A good file with a piece cut out, overwritten, doubled or put in."""

    def spoil(how, start, stop, piece):
        start, stop = sorted((int(start * len(good)), int(stop * len(good))))
        middle = {"cut": b"", "write": piece, "double": 2 * good[start:stop], "put": piece + good[start:stop]}[how]
        return good[:start] + middle + good[stop:]

    place = st.floats(0, 1)
    ways = st.sampled_from(["cut", "write", "double", "put"])
    return st.builds(spoil, ways, place, place, st.binary(max_size=40)) | st.binary(max_size=200)


# ------------------------------------------------------------------------------------ the command line

WORDS = st.sampled_from(
    [
        *(*COMMANDS, *PROBLEMS, *ALGORITHMS, "--rounds", "--algorithm", "--seeds", "--data", "--config", "--grid"),
        *(
            "--learning-rate",
            "--help",
            "--print-config",
            "1",
            "-1",
            "0",
            "nan",
            "inf",
            "1e400",
            "",
            "=",
            "[",
            "{}",
            "FCSG(",
        ),
    ]
)


LONG = (["doctor"], ["reproduce"], ["tour"])
"""Commands that compute for a minute without any options."""


@cases(30)
@given(st.lists(WORDS | st.text(max_size=6), max_size=6).filter(lambda words: words[:1] not in LONG))
def test_any_words(words):
    """Not those that would really compute: `run` has no problem that is small by itself."""
    small = ["--rounds", "1", "--local-steps", "1", "--seeds", "1"] if words[:1] in (["run"], ["sweep"]) else []
    if words[:1] in (["run"], ["sweep"]) and len(words) > 1 and words[1] in PROBLEMS:
        words = [words[0], "nested_quadratic", *words[2:]]
    if words[:2] == ["data", "get"]:
        return
    assert_told(call(*words, *small))


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=5)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=3), SCALARS, max_size=2)
KEYS = st.sampled_from(
    ["rounds", "seeds", "algorithm", "clients", "learning_rate", "participation", "out", "clip", "noise"]
)


@cases(20)
@given(st.dictionaries(KEYS | st.text(max_size=8), VALUES, max_size=3))
def test_any_configuration(place, changes):
    small = {"problem": "nested_quadratic", "rounds": 1, "local_steps": 1, "seeds": 1, "clients": 2}
    (place / "config.yaml").write_text(yaml.safe_dump(small | changes, allow_unicode=True))
    assert_told(call("run", "--config", place / "config.yaml"))


@cases(20)
@given(spoilt(b"problem: nested_quadratic\nrounds: 1\nlocal_steps: 1\nseeds: [0]\nclients: 2\nalgorithm: [FCSG]\n"))
def test_any_file_for_a_configuration(place, text):
    (place / "config.yaml").write_bytes(text)
    assert_told(call("run", "--config", place / "config.yaml", "--rounds", "1", "--seeds", "1"))


# ------------------------------------------------------------------------------------ tables

TABLE = pd.DataFrame({"a": np.arange(40) * 0.5, "b": ["x", "y"] * 20, "site": ["s", "t"] * 20, "y": [0, 0, 0, 1] * 10})


def written(kind):
    stream = io.BytesIO()
    if kind == "csv":
        stream.write(TABLE.to_csv(index=False).encode())
    elif kind == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'fedcso[parquet]'")
        TABLE.to_parquet(stream)
    else:
        np.savez(stream, **{name: TABLE[name].to_numpy(str if name in "bsite" else None) for name in TABLE})
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_any_table(place, kind):
    file = place / f"table.{kind}"

    @cases(100)
    @given(spoilt(written(kind)))
    def attempt(data):
        file.write_bytes(data)
        told(lambda: load_sites(data=str(file), label="y", site="site"))

    attempt()


# ------------------------------------------------------------------------------------ pictures and archives


@cases(100)
@given(st.fixed_dictionaries({name: st.binary(max_size=100) for name in FILES}))
def test_any_idx_files(contents):
    """Only what was published is taken, whatever a header says."""
    with pytest.raises(FedcsoError, match="MNIST"):
        decode(contents)


@cases(100)
@given(st.data())
def test_any_pickled_pictures(data):
    good = b"\x80\x02}q\x00(U\x04dataq\x01U\x03abcU\x06labels]q\x02(K\x01K\x02eu."
    told(lambda: to_records("data_batch_1", data.draw(spoilt(good)), 3072))


def zipped():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images_background/Latin/character01/0001_01.png", b"no picture")
        archive.writestr("../../outside.png", b"somewhere else")
    return stream.getvalue()


@cases(100)
@given(spoilt(zipped()))
def test_any_zip(place, data):
    file = place / "images_background.zip"
    file.write_bytes(data)
    told(lambda: read([file, file]))
    assert {path.name for path in place.iterdir()} == {"images_background.zip"}
    assert not (place.parent / "outside.png").exists()


@cases(100)
@given(st.sampled_from([".gz", ".xz", ".tar.gz", ""]), st.binary(max_size=300))
def test_any_compressed_file(place, ending, data):
    file = place / f"file{ending}"
    file.write_bytes(data)
    told(lambda: read_file(file, 1000), str(file))
    told(lambda: read_members(file, ["a"], 1000), str(file))
    file.unlink()


# ------------------------------------------------------------------------------------ checkpoints


def test_any_checkpoint(place):
    """A spoilt one is passed over for the one before it, and nothing is thrown away."""
    folder = run("run", *QUADRATIC, "--algorithm", "FCSG", "--checkpoint-rounds", "1", out=place / "runs")
    (newest,) = [max(part.glob("*.safetensors")) for part in (folder / "checkpoints").glob("*/*")]
    good = newest.read_bytes()

    @cases(100)
    @given(spoilt(good))
    def attempt(data):
        newest.write_bytes(data)
        found = checkpoint.newest(newest.parent)
        assert found is None or isinstance(found.done, int)
        if data != good and found is not None:
            assert found.done < 3 or all(torch.isfinite(trace.last).all() for trace in found.traces)

    attempt()
    newest.write_bytes(good)
    assert checkpoint.newest(newest.parent).done == 3
