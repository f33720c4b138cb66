"""The rule between the rooms of the package: a room imports only from rooms below it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "fedcso"

FLOORS = (
    ("core",),
    ("models", "datasets"),
    ("algorithms", "problems", "estimators"),
    ("theory",),
    ("engines",),
    ("runs",),
    ("reports",),
    ("federation",),
    ("experiments", "sklearn"),
    ("cli",),
    ("__init__", "__main__"),
)
"""From the bottom up; rooms on one floor do not import each other."""

FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

FORMER_PLACES = {"fedcso.engines.flower.client", "fedcso.engines.flower.server"}
"""Modules that only re-export what has moved up, because files that users keep import them from there."""


def module_name(path: Path) -> str:
    return ".".join(("fedcso", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name != "templates"}


def room(module: str) -> str:
    return "__init__" if module == "fedcso" else module.split(".")[1]


def imports(source: str) -> Iterator[str]:
    """The modules of the package that a source file imports, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            module = node.module or ""
            for name in node.names:
                inner = f"{module}.{name.name}"
                yield inner if inner in MODULES else module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def goes_up(module: str, imported: str) -> bool:
    if imported.partition(".")[0] != "fedcso" or room(module) == room(imported):
        return False
    return FLOOR[room(imported)] >= FLOOR[room(module)]


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


def test_former_places_only_re_export():
    for module in FORMER_PLACES:
        kinds = {type(node) for node in ast.parse(MODULES[module].read_text()).body}
        assert kinds == {ast.Expr, ast.ImportFrom}  # the docstring and the import
