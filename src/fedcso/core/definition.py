"""What an object is said to be by its definition, read from the source or asked of the object itself.

Lists and help need names, docstrings and fields. Reading them from the source does not import the file, and with it
torch, which takes longer than everything else that they do.
"""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from importlib.abc import InspectLoader
from importlib.util import find_spec
from typing import Any, Protocol


class Definition(Protocol):
    """What is known of an object from its definition."""

    @property
    def summary(self) -> str:
        """The first line of the docstring; of an object made by a call, `plain = Estimator(losses)`, that of its first
        argument, or this itself if it is text."""

    @property
    def module_summary(self) -> str:
        """The first line of the docstring of its file."""

    @property
    def fields(self) -> list[str]:
        """The names of the fields of a dataclass, also of those it inherits."""

    @property
    def defaults(self) -> dict[str, str]:
        """The defaults of these fields, as they are written in Python; fields without one are left out."""

    def attribute(self, name: str) -> Any:
        """Return an attribute of a class, of its own or inherited; None if there is none."""


@dataclass(frozen=True)
class Written:
    """The definition of a name in the source of a module, which is not imported."""

    module: str
    name: str

    @property
    def summary(self) -> str:
        """The first line of the docstring, or of the first argument's."""
        node = self._node
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            return _first_line(ast.get_docstring(node))
        return self._text(node.value) if isinstance(node, ast.Assign) else ""

    @property
    def module_summary(self) -> str:
        """The first line of the docstring of the file."""
        return _first_line(ast.get_docstring(_parse(self.module)))

    @property
    def fields(self) -> list[str]:
        """The names of the fields, those of base classes first."""
        return list(dict.fromkeys(ast.unparse(line.target) for line in self._field_lines()))

    @property
    def defaults(self) -> dict[str, str]:
        """The defaults, those of a class before those of its base classes."""
        return {ast.unparse(line.target): ast.unparse(line.value) for line in self._field_lines() if line.value}

    def attribute(self, name: str) -> Any:
        """Return the value that a class body gives to a name, which must be a literal."""
        for line in (line for one in self._ancestry() for line in one.body):
            if isinstance(line, ast.AnnAssign) and line.value and ast.unparse(line.target) == name:
                return ast.literal_eval(line.value)
        return None

    def _field_lines(self) -> list[ast.AnnAssign]:
        """Return the lines that define fields, those of base classes first."""
        lines = [line for one in [*self._ancestry()][::-1] for line in one.body if isinstance(line, ast.AnnAssign)]
        return [line for line in lines if not ast.unparse(line.annotation).startswith("ClassVar")]

    def _text(self, value: ast.expr) -> str:
        """Return what describes a value: text itself, a summary of what is named, the first argument of a call."""
        if isinstance(value, ast.Call):
            return self._text(value.args[0]) if value.args else ""
        return Written(self.module, value.id).summary if isinstance(value, ast.Name) else str(ast.literal_eval(value))

    @property
    def _node(self) -> ast.stmt | None:
        return _names(self.module).get(self.name)

    def _ancestry(self) -> Iterator[ast.ClassDef]:
        """Return the class and its base classes in this package, the nearest first."""
        node = self._node
        if isinstance(node, ast.ImportFrom):
            original = next(alias.name for alias in node.names if (alias.asname or alias.name) == self.name)
            if str(node.module).partition(".")[0] == __name__.partition(".")[0]:
                yield from Written(str(node.module), original)._ancestry()
        if isinstance(node, ast.ClassDef):
            yield node
            for base in node.bases:
                yield from Written(self.module, ast.unparse(base).partition("[")[0])._ancestry()


@dataclass(frozen=True)
class Imported:
    """The definition of an object that a program has at hand."""

    thing: Any

    @property
    def summary(self) -> str:
        """The first line of the docstring, or of the first field's."""
        if not is_dataclass(self.thing) or isinstance(self.thing, type):
            return _first_line(inspect.getdoc(self.thing))
        first = getattr(self.thing, fields(self.thing)[0].name)
        return first if isinstance(first, str) else Imported(first).summary

    @property
    def module_summary(self) -> str:
        """The first line of the docstring of the file."""
        return _first_line(inspect.getdoc(inspect.getmodule(self.thing)))

    @property
    def fields(self) -> list[str]:
        """The names of the fields."""
        return [field.name for field in fields(self.thing)]

    @property
    def defaults(self) -> dict[str, str]:
        """The defaults of the fields."""
        return {field.name: repr(field.default) for field in fields(self.thing) if field.default is not MISSING}

    def attribute(self, name: str) -> Any:
        """Return an attribute of the object."""
        return getattr(self.thing, name, None)


def _first_line(docstring: str | None) -> str:
    return (docstring or "").partition("\n")[0]


@cache
def _parse(module: str) -> ast.Module:
    """Return the syntax tree of a module, of whose functions and methods only the docstrings are kept."""
    found = find_spec(module)
    assert found is not None, module  # it is a file of this package
    assert isinstance(found.loader, InspectLoader), module
    tree = ast.parse(found.loader.get_source(module) or "")
    blocks: list[ast.Module | ast.ClassDef] = [tree, *(one for one in tree.body if isinstance(one, ast.ClassDef))]
    for block in blocks:
        for line in block.body:
            if isinstance(line, ast.FunctionDef):
                line.body = line.body[:1]
    return tree


@cache
def _names(module: str) -> dict[str, ast.stmt]:
    """Return the statements of a module that define or import a name, by this name."""
    found: dict[str, ast.stmt] = {}
    for line in _parse(module).body:
        if isinstance(line, ast.ClassDef | ast.FunctionDef):
            found[line.name] = line
        elif isinstance(line, ast.Assign):
            found |= {ast.unparse(target): line for target in line.targets}
        elif isinstance(line, ast.ImportFrom):
            found |= {alias.asname or alias.name: line for alias in line.names}
    return found
