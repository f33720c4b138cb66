"""Wheel and sdist hold what is needed, and the wheel runs from an environment that has nothing of this repository."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import fedcso

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("build", reason="needs build: pip install 'fedcso[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    # hatchling is here already: no isolated environment, which would have to be fetched.
    subprocess.run(
        [sys.executable, "-m", "build", "--quiet", "--no-isolation", "--outdir", folder, ROOT],
        check=True,
        capture_output=True,
    )
    return folder


def test_the_version_is_the_packages(built):
    assert {path.name for path in built.iterdir()} == {
        f"fedcso-{fedcso.__version__}-py3-none-any.whl",
        f"fedcso-{fedcso.__version__}.tar.gz",
    }


def test_the_wheel_has_code_templates_and_types_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "py.typed",
        "reports/templates/report.html",
        "reports/templates/report.js",
        "fitting/templates/predict.py",
    ):
        assert f"fedcso/{needed}" in names
    assert all(name.startswith(("fedcso/", f"fedcso-{fedcso.__version__}.dist-info/")) for name in names)


def test_the_sdist_has_tests_examples_and_documents(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("README.md", "LICENSE", "Makefile", "pyproject.toml", "examples/own_problem.py", "tests/helpers.py"):
        assert needed in names


def test_it_runs_from_the_wheel(built, tmp_path):
    """Installed into a folder of its own, in front of everything; what it depends on is here already."""
    (wheel,) = built.glob("*.whl")
    place = tmp_path / "site"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", place, wheel]
    subprocess.run([sys.executable, *install], check=True, capture_output=True)
    start = f"import sys; sys.path.insert(0, {str(place)!r}); from fedcso.cli import main; print(main.__file__)"
    command = ["run", "nested_quadratic", "--rounds", "2", "--seeds", "1", "--algorithm", "FCSG", "--out", "runs"]
    program = f"{start}; raise SystemExit(main.main({command!r}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(place))
    assert list((tmp_path / "runs").glob("*/report.html"))


def test_the_changelog_and_the_citation_name_the_version_and_its_date():
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert about["version"] == fedcso.__version__
    newest = re.search(r"^## \[(\d.*?)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest.groups() == (fedcso.__version__, str(about["date-released"]))
