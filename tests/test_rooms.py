"""The rule between the rooms of the package: a room imports only from rooms below it."""

import ast

import pytest

from docs.rooms import FLOOR, FORMER_PLACES, MODULES, PACKAGE, goes_up, imported_rooms, imports, room


def test_every_module_is_in_a_room():
    assert {room(module) for module in MODULES} == set(FLOOR)


def test_the_root_holds_four_files_and_the_rooms():
    files = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert files == {"__init__.py", "__main__.py", "sklearn.py", "py.typed"}


@pytest.mark.parametrize("name", sorted(FLOOR))
def test_a_room_imports_only_from_rooms_below_it(name):
    upward = [
        f"{module} imports {imported}"
        for module, path in MODULES.items()
        if room(module) == name and module not in FORMER_PLACES
        for imported in imports(path.read_text())
        if goes_up(module, imported)
    ]
    assert upward == []


@pytest.mark.parametrize(
    ("module", "source", "upward"),
    [
        ("fedcso.core.plan", "from fedcso.engines import loop", True),
        ("fedcso.core.plan", "def f():\n    import fedcso.runs.folder", True),
        ("fedcso.core.plan", "from fedcso import Task", True),
        ("fedcso.problems.auprc", "from fedcso.algorithms.fcsg import FCSG", True),
        ("fedcso.engines.loop", "from fedcso.core.plan import Plan", False),
        ("fedcso.engines.loop", "import torch", False),
    ],
)
def test_an_import_that_goes_up_is_seen(module, source, upward):
    assert any(goes_up(module, imported) for imported in imports(source)) == upward


SLOW = {"matplotlib", "pandas", "scipy", "sklearn"}
EVERY_PROCESS = ["core", "codecs", "algorithms", "problems", "estimators", "models", "theory", "engines", "federation"]
"""Rooms that also the processes of ranks and sites load, one of them for each message."""


@pytest.mark.parametrize("name", EVERY_PROCESS)
def test_packages_that_load_slowly_are_imported_where_they_are_used(name):
    """Regression: every process loaded scipy.stats, which takes a second, for one quantile."""
    at_once = [
        f"{module} imports {package}"
        for module, path in MODULES.items()
        if room(module) == name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for package in SLOW & {found.partition(".")[0] for found in imports(ast.unparse(node))}
    ]
    assert at_once == []


def test_rooms_are_listed_with_those_they_import():
    found = imported_rooms()
    assert set(found) == set(FLOOR)
    assert found["core"] == []
    assert found["problems"] == ["models", "datasets", "core"]
    assert all(FLOOR[below] < FLOOR[name] for name, others in found.items() for below in others)


def test_former_places_only_re_export():
    for module in FORMER_PLACES:
        kinds = {type(node) for node in ast.parse(MODULES[module].read_text()).body}
        assert kinds == {ast.Expr, ast.ImportFrom}  # the docstring and the import
