"""Sphinx: Markdown pages and notebooks by MyST, the look by Furo, the API from docstrings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # for the modules beside this one

import fedcso
from docs import api, gallery

project = "fedcso"
author = "The fedcso developers"
version = release = fedcso.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "docs.formulas"]
html_math_renderer = "svg"  # of docs.formulas, which needs no network
nb_execution_mode = "force"  # the notebooks are kept without outputs
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "fedcso"
html_static_path = ["_static"]
html_css_files = ["fedcso.css"]
exclude_patterns = ["_build"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
suppress_warnings = ["myst.xref_missing"]  # links to files outside docs/, which a test follows


def setup(app: object) -> None:
    """Write the pages of the API and the figures before anything is read; show docstrings as they are."""
    app.connect("builder-inited", lambda app: api.write(Path(app.srcdir) / "api"))  # type: ignore[attr-defined]
    app.connect("builder-inited", lambda app: gallery.write(Path(app.srcdir) / "gallery"))  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", _as_written)  # type: ignore[attr-defined]


def _as_written(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text with formulas set off by indentation: shown line by line."""
    if lines:
        lines[:] = [f"| {line}" if line.strip() else "" for line in map(_escaped, lines)]


def _escaped(line: str) -> str:
    """Nothing in it is markup but `names`."""
    kept, parts = len(line) - len(line.lstrip()), line.lstrip().replace("``", "`").split("`")
    if len(parts) % 2 == 0:  # a name that is broken over two lines
        parts = ["`".join(parts)]
    for i, part in enumerate(parts):
        plain = "".join(f"\\{sign}" if sign in "\\*`_|<>:" else sign for sign in part)
        parts[i] = f"\\ ``{part}``\\ " if i % 2 else plain
    return "\u00a0" * kept + "".join(parts)
