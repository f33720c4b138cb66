"""Write a Flower app into a folder: the code that sites run, its settings, and instructions for all participants."""

import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError

PACKAGE = "federated"
TEMPLATES = {
    "app/pyproject.toml": "pyproject.toml",
    f"app/{PACKAGE}/__init__.py": "package.py",
    f"app/{PACKAGE}/server_app.py": "server_app.py",
    f"app/{PACKAGE}/client_app.py": "client_app.py",
    "README.md": "coordinator.md",
    "SITE.md": "site.md",
}
"""Templates by the path of the file that is written from each."""


def write_app(folder: Path, config: dict[str, Any], sites: list[str]) -> None:
    """Fill the folder, which must be new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FedcsoError(f"{folder} already exists and is not empty; name a new or empty folder")
    package = folder / "app" / PACKAGE
    package.mkdir(parents=True, exist_ok=True)
    config = config | {"problem": _brought_along(config["problem"], package), "out": str(folder.resolve() / "runs")}
    atomic.write(package / "config.yaml", yaml.safe_dump(config, sort_keys=False, allow_unicode=True))
    words = {
        "PROBLEM": str(config["problem"]),
        "ALGORITHM": ", ".join(config["algorithm"]),
        "FOLDER": str(folder),
        "SITES": ", ".join(sites),
        "FIRST": sites[0],
        "COUNT": str(len(sites)),
    }
    for target, template in TEMPLATES.items():
        text = (resources.files("fedcso.federation.deploy") / "templates" / template).read_text()
        for word, meaning in words.items():
            text = text.replace(f"@{word}@", meaning)
        atomic.write(folder / target, text)


def _brought_along(problem: str, package: Path) -> str:
    """A problem in a file of one's own goes into the app."""
    where, _, attribute = problem.rpartition(":")
    if not where.endswith(".py"):
        return problem
    shutil.copy(where, package / "own_problem.py")
    return f"own_problem.py:{attribute}"
