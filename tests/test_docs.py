"""The documentation builds without a warning, its code runs, and nothing public is missing from it."""

import gc
import inspect
import json
import os
import re
import shutil
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import pytest

import fedcso
from docs import api, architecture, gallery
from docs.rooms import MODULES, PACKAGE, room
from fedcso.algorithms import ALGORITHMS
from fedcso.cli.main import COMMANDS
from tests.forks import SERVER

ROOT = Path(__file__).parent.parent
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "api"]  # which is made
BLOCKS = {page: re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M) for page in PAGES}


NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def name_of(page):
    return page.relative_to(ROOT / "docs").as_posix()


def test_the_table_of_methods_has_the_groups_of_the_list():
    _, table = (ROOT / "docs" / "choosing.md").read_text().split("## Which method?")
    first_cells = re.findall(r"^\| (.*?) \|", table.partition("\nCompare several")[0], re.M)
    found: dict[str, list[str]] = {}
    for cell in first_cells[2:]:  # after the head of the table
        if cell.startswith("**"):
            found[cell.strip("*")] = group = []
        else:
            group += cell.split(", ")
    assert found == ALGORITHMS.groups()


def build(folder):
    """Build a copy of the documentation as `make docs` does, but without writing pages and with coarse figures.

    Called in a process of its own, which the exit code ends; it leaves the names of what is documented, by page.
    """
    from docutils.nodes import container
    from sphinx.application import Sphinx

    gc.disable()  # the process ends soon, and collecting takes a fifth of its time
    gallery.bias_curve = partial(gallery.bias_curve, steps=3, b=4)
    for name in ("CHANGELOG.md", "examples"):  # of which pages show parts
        (folder / name).symlink_to(ROOT / name)
    made = shutil.ignore_patterns("_build", "api", "gallery", "__pycache__")
    docs = shutil.copytree(ROOT / "docs", folder / "docs", ignore=made)
    out, overrides = folder / "out", {"toc_object_entries": False}
    with (folder / "said.txt").open("w") as said, redirect_stdout(said), redirect_stderr(said):
        app = Sphinx(docs, ROOT / "docs", out, out, "dummy", overrides, said, said, warningiserror=True)
        app.build()
    python = app.env.domains["py"]
    shown = [
        page
        for page in app.env.found_docs
        if any("cell_output" in node["classes"] for node in app.env.get_doctree(page).findall(container))
    ]
    found = {
        "pages": sorted(app.env.found_docs),
        "objects": sorted(python.objects),
        "modules": {name: module.docname for name, module in python.modules.items()},
        "pages with outputs": sorted(shown),
    }
    (folder / "found.json").write_text(json.dumps(found))
    sys.exit(app.statuscode)


def test_nothing_that_a_build_leaves_is_read_by_the_next_one():
    """Executed notebooks are left in a folder beside the output."""
    (out,) = re.findall(r"sphinx .* docs (docs/\S+)", (ROOT / "Makefile").read_text())
    assert Path(out).parent == Path("docs/_build")
    assert 'exclude_patterns = ["_build"]' in (ROOT / "docs/conf.py").read_text()


def test_it_builds_without_a_warning_and_has_every_page_public_object_and_module(tmp_path):
    # One test, since the build takes longest by far, and tests of a file can run in several processes.
    pytest.importorskip("sphinx", reason="needs Sphinx: pip install 'fedcso[docs]'")
    process = SERVER.Process(target=build, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == 0, (tmp_path / "said.txt").read_text()
    found = json.loads((tmp_path / "found.json").read_text())
    assert {name_of(page.with_suffix("")) for page in [*PAGES, *NOTEBOOKS]} <= set(found["pages"])
    # The build executes them.
    assert found["pages with outputs"] == [name_of(notebook.with_suffix("")) for notebook in NOTEBOOKS]
    for name in fedcso.__all__:
        thing = getattr(fedcso, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert f"{thing.__module__}.{thing.__qualname__}" in found["objects"], name
    for module in MODULES:
        name = room(module)
        if name not in {*api.COMMANDS, "__init__"}:
            assert found["modules"][module] == f"api/{name}", module


def execute(code, output):
    """Execute code as a file of its own, in a folder from which it reaches the examples; in a process of its own."""
    (output.parent / "examples").symlink_to(ROOT / "examples")
    os.chdir(output.parent)
    with output.open("w") as said, redirect_stdout(said), redirect_stderr(said):
        try:
            exec(compile(code, "page", "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            sys.exit(1)


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCKS[page]], ids=name_of)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path):
    process = SERVER.Process(target=execute, args=("\n".join(BLOCKS[page]), tmp_path / "said.txt"))
    process.start()
    process.join()
    assert process.exitcode == 0, (tmp_path / "said.txt").read_text()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name_of)
def test_notebooks_are_kept_without_outputs_and_link_to_pages_that_are_there(notebook):
    cells = json.loads(notebook.read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells)
    text = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for path in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (notebook.parent / path).is_file(), path


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_that_are_there(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    for path in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / path).is_file(), path


def anchors(page):
    """Return the anchors of a page's headings, as MyST and code hosts make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    titles = re.findall(r"^#{1,3} (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_links_to_headings_lead_to_headings_that_are_there(page):
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", page.read_text()):
        target = page.parent / path if path else page
        assert anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_files_of_the_repository_that_are_named_are_there(page):
    named = re.findall(r"\b(?:src|tests|examples|benchmarks)/[\w/.]*[\w/]", page.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_drawing_of_the_rooms_is_what_the_imports_say():
    assert architecture.DRAWING.read_text() == architecture.draw(), "it is old: python -m docs.architecture"


def test_the_way_of_a_run_leads_through_files_that_are_there():
    files = re.findall(r"`([\w/]+/\w+\.py)`", (ROOT / "docs" / "architecture.md").read_text())
    assert len(files) > 20
    assert [file for file in files if not (ROOT / file).is_file() and not (PACKAGE / file).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_are_those_there_are(page):
    text = page.read_text()
    blocks = "\n".join(re.findall(r"^```.*?^```", text, re.S | re.M))
    for command in re.findall(r"^fedcso ([\w-]+)", blocks, re.M) + re.findall(r"`fedcso (\w[\w-]*)", text):
        assert command in COMMANDS, command
