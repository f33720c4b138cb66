"""The reference of the API: a page for each room, made from the modules that there are and their docstrings."""

import inspect
from pathlib import Path

import fedcso
from docs.rooms import FLOORS, MODULES, room, summary

COMMANDS = {"cli", "experiments", "__main__"}
"""Rooms that are used through the command line."""

ROOMS = [name for floor in FLOORS for name in floor if name not in COMMANDS | {"__init__"}]


def write(folder: Path) -> None:
    """Write all pages into a folder, from which Sphinx reads them."""
    folder.mkdir(exist_ok=True)
    for name, text in {"index": _index(), **{name: page(name) for name in ROOMS}}.items():
        file = folder / f"{name}.md"
        if not file.is_file() or file.read_text() != text:  # Sphinx reads again what is newer
            file.write_text(text)


def page(name: str) -> str:
    """Return the page of a room: a heading for each module, below which Sphinx puts what is in it."""
    first, *others = (module for module in MODULES if room(module) == name)
    sections = [f"# {first}\n\n{_contents(first)}", *(f"## {module}\n\n{_contents(module)}" for module in others)]
    return "\n".join(sections)


def _contents(module: str) -> str:
    # Without __all__, which would repeat what a package takes from its modules.
    return f"```{{eval-rst}}\n.. automodule:: {module}\n   :ignore-module-all:\n```\n"


def _index() -> str:
    names = "\n".join(f"- `{name}`: {{py:obj}}`{_place(name)}`" for name in fedcso._PLACES)
    rooms = "\n".join(f"- [fedcso.{name}]({name}.md): {summary(f'fedcso.{name}')}" for name in ROOMS)
    pages = "\n".join(ROOMS)
    return (
        "# API\n\nMade from the docstrings. Most programs need no more than `from fedcso import …`:\n\n"
        f"{names}\n\nThe rooms of the package, from the bottom up ([architecture](../architecture.md)):\n\n"
        f"{rooms}\n\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
    )


def _place(name: str) -> str:
    """Return the full name under which a public object is documented."""
    thing = getattr(fedcso, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        return f"{thing.__module__}.{thing.__qualname__}"
    return f"{fedcso._PLACES[name]}.{name}"
