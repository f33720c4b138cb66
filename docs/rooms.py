"""The rooms of the package, which of them stands above which, and what the modules in them import."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "fedcso"

FLOORS = (
    ("core",),
    ("models", "datasets"),
    ("algorithms", "codecs", "problems", "estimators"),
    ("theory",),
    ("engines",),
    ("runs",),
    ("reports", "checks"),
    ("fitting",),
    ("federation",),
    ("experiments", "sklearn"),
    ("studies",),
    ("cli",),
    ("__init__", "__main__"),
)
"""From the bottom up: a room imports only from floors below its own."""

FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

FORMER_PLACES = {"fedcso.engines.flower.client", "fedcso.engines.flower.server"}
"""Modules that only re-export what has moved up, because files that users keep import them from there."""


def _name(path: Path) -> str:
    return ".".join(("fedcso", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name != "templates"}
"""Every module of the package, and its file."""


def room(module: str) -> str:
    """Return the room that a module is in."""
    return "__init__" if module == "fedcso" else module.split(".")[1]


def imports(source: str) -> Iterator[str]:
    """Yield the modules that a source file imports, also inside functions."""
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
    """Return True if an import leads to another room that is not below the module's own."""
    if imported.partition(".")[0] != "fedcso" or room(module) == room(imported):
        return False
    return FLOOR[room(imported)] >= FLOOR[room(module)]


def summary(module: str) -> str:
    """Return the first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(MODULES[module].read_text())) or "").partition("\n")[0]


def imported_rooms() -> dict[str, list[str]]:
    """Return for each room, from the top of the house down, the rooms that its modules import, in the same order."""
    order = [name for floor in reversed(FLOORS) for name in floor]
    found: dict[str, set[str]] = {name: set() for name in order}
    for module, path in MODULES.items():
        if module not in FORMER_PLACES:
            found[room(module)] |= {room(name) for name in imports(path.read_text()) if name.split(".")[0] == "fedcso"}
    return {name: [other for other in order if other in found[name] - {name}] for name in order}
