"""The model that `--init` names: the exported model of a run folder, or a safetensors file."""

from functools import reduce
from pathlib import Path
from typing import NamedTuple

from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.core.initial_weights import InitialWeights
from fedcso.engines.choice import choose_exported
from fedcso.runs.folder import RunFolder
from fedcso.runs.tables import Row, declared_in, table_in

FILE = "init.safetensors"
"""The copy of the initial weights in the folder of the run that starts from them."""


class Which(NamedTuple):
    """One of the models of a run."""

    method: str
    seed: str


def read_initial(name: str, root: Path = Path(), fresh_last_layer: bool = False) -> InitialWeights:
    """Return the weights of `FOLDER`, `FOLDER:METHOD` or `FILE.safetensors`, whose paths begin at `root`."""
    found = _of_file(root / name) if name.endswith(".safetensors") else _of_folder(name, root)
    return InitialWeights.of(found, fresh_last_layer)


def _of_file(path: Path) -> InitialWeights:
    """Return the only model in a file."""
    content = _read(path)
    models = {_which(leaf) for leaf in content.leaves} - {None}
    if not models:
        return content
    if len(models) > 1:
        raise FedcsoError(f"init: {path} holds {len(models)} models: name the folder of the run, or FOLDER:METHOD")
    return _one(content, next(iter(models)))  # type: ignore[arg-type]  # None was taken away


def _of_folder(name: str, root: Path) -> InitialWeights:
    """Return the exported model of a run: of the method that is named, else of the best one on validation data."""
    place, colon, method = name.rpartition(":")
    if not colon or (root / name).is_dir():
        place, method = name, ""
    if not (root / place).is_dir():
        raise FedcsoError(f"init: there is no run folder and no file {root / place}: name one of them")
    folder = RunFolder.open(root / place)
    path = folder.path / "model-best.safetensors"
    if not path.is_file():
        raise FedcsoError(f"init: {folder.path} has no models yet; continue it with: fedcso resume {folder.path}")
    chosen = _exported(folder, method)
    return _one(_read(path), Which(str(chosen["algorithm"]), str(chosen["seed"])))


def _exported(folder: RunFolder, method: str) -> Row:
    """Return the evaluation of the exported model."""
    declared = declared_in(folder)
    exported = choose_exported(table_in(folder.path / "metrics.csv"), declared)
    if method:
        if method not in exported:
            raise UnknownName(f"method in {folder.path}", method, exported)
        return exported[method]
    if not exported:
        raise FedcsoError(f"init: {folder.path} has no chosen model, because an earlier version wrote it: run it again")
    if len(exported) > 1 and not declared.validated:
        raise FedcsoError(
            f"init: {folder.path} has models of several methods and no validation data to choose by: "
            f"name one, as in {folder.path}:{next(iter(exported))}"
        )
    deciding = declared[declared.deciding]
    return reduce(
        lambda one, other: other if deciding.is_better(*(float(row[deciding.name]) for row in (other, one))) else one,
        exported.values(),
    )


def _read(path: Path) -> InitialWeights:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FedcsoError(f"init: there is no file {path}") from None
    except OSError as error:
        raise FedcsoError(f"init: {path} can't be read: {error.strerror}") from error
    return InitialWeights.from_bytes(content, str(path))


def _which(leaf: str) -> Which | None:
    """Return the model to which a leaf `method/seed/path` of a run's file belongs; None for a leaf of other files."""
    parts = leaf.rsplit("/", 2)
    return Which(*parts[:2]) if len(parts) == 3 else None


def _one(content: InitialWeights, which: Which) -> InitialWeights:
    """Return one of the models in a run's file."""
    leaves = {path.rsplit("/", 1)[1]: leaf for path, leaf in content.leaves.items() if _which(path) == which}
    return InitialWeights(leaves, content.weights_at)
