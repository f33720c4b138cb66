"""Write a Flower app into a folder: the code that sites run, its settings, and instructions for all participants."""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError
from fedcso.federation.options import THRESHOLDS, Federation
from fedcso.reports.wishes import Wishes
from fedcso.runs import initial_model
from fedcso.runs.config import OWN_OPTIONS, RunConfig
from fedcso.runs.methods import MethodSpec

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

SIMULATION_SETTINGS = ("engine", "ranks", "track", "name", "checkpoint_rounds", "checkpoint_seconds")
"""Settings of simulations, which are not written to the settings of an app."""


def write_app(folder: Path, config: RunConfig, federation: Federation, wishes: Wishes) -> None:
    """Write the app to a folder, which must be new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FedcsoError(f"{folder} already exists and is not empty; name a new or empty folder")
    package = folder / "app" / PACKAGE
    package.mkdir(parents=True, exist_ok=True)
    config = replace(
        config,
        problem=_copy_user_file(config.problem, "own_problem", package),
        problem_options=_copy_option_files(config.problem_options, package),
        estimator=_copy_user_file(config.estimator, "own_estimator", package),
        root=package,
        methods=tuple(_copy_method_file(method, n, package) for n, method in enumerate(config.methods)),
        out=str(folder.resolve() / "runs"),
        init=_copy_init(config, package),
    )
    settings = {"command": "flower"} | config.flat() | federation.flat() | {THRESHOLDS: asdict(wishes)}
    settings = {name: value for name, value in settings.items() if name not in SIMULATION_SETTINGS}
    atomic.write(package / "config.yaml", yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    sites = federation.names
    values = {
        "PROBLEM": config.problem,
        "ALGORITHM": ", ".join(method.text for method in config.methods),
        "FOLDER": str(folder),
        "SITES": ", ".join(sites),
        "FIRST": sites[0],
        "COUNT": str(len(sites)),
    }
    for target, template in TEMPLATES.items():
        text = (resources.files("fedcso.federation.deploy") / "templates" / template).read_text()
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        atomic.write(folder / target, text)


def _copy_user_file(name: str, file: str, package: Path) -> str:
    """Copy the file of `path.py:name` to FILE.py in the app and return its name there; return other names unchanged."""
    where, _, attribute = name.rpartition(":")
    if not where.endswith(".py"):
        return name
    shutil.copy(where, package / f"{file}.py")
    return f"{file}.py:{attribute}"


def _copy_init(config: RunConfig, package: Path) -> str | None:
    """Copy the initial weights into the app and return their name there."""
    if config.init is None:
        return None
    weights = initial_model.read_initial(config.init, config.root)
    atomic.write(package / initial_model.FILE, weights.to_bytes())
    return initial_model.FILE


def _copy_option_files(options: Mapping[str, Any], package: Path) -> dict[str, Any]:
    own = {name: _copy_user_file(options[name], f"own_{name}", package) for name in OWN_OPTIONS if name in options}
    return dict(options) | own


def _copy_method_file(method: MethodSpec, number: int, package: Path) -> MethodSpec:
    name = _copy_user_file(method.name, f"own_method{number}", package)
    return replace(method, text=method.text.replace(method.name, name, 1))
