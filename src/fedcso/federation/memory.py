"""A site's local state of a run, kept in files so that it survives restarts.

One file a round, because the coordinator alone knows which rounds counted: it says with every order which round's
state is to be taken up. That one and the new one are kept until the next order tells which of them it was.
"""

from pathlib import Path

from fedcso.core import atomic
from fedcso.core.errors import InvalidValue
from fedcso.core.packing import pack, unpack
from fedcso.core.tree import Tree
from fedcso.runs.study import as_file_name


class Memory:
    """The states of one run, method and seed at one site."""

    def __init__(self, folder: Path, run: str):
        parts = run.split("/")
        if not all(part == as_file_name(part) and part.strip(".") for part in parts):
            raise InvalidValue("run", run, "a relative path inside the site's folder")
        self.place = folder.joinpath("local", *parts)

    def recall(self, round: int) -> dict[str, Tree] | None:
        """Return the state after a round, or None."""
        path = self._path(round)
        return dict(unpack(path.read_bytes())[0]) if round >= 0 and path.is_file() else None

    def keep(self, round: int, local: dict[str, Tree], besides: int) -> None:
        """Save the state after a round and keep that of the preceding one; remove all others."""
        if not local:
            return
        self.place.mkdir(parents=True, exist_ok=True)
        atomic.write(self._path(round), pack(local))
        for path in self.place.glob("*.safetensors"):
            if path not in (self._path(round), self._path(besides)):
                path.unlink(missing_ok=True)

    def _path(self, round: int) -> Path:
        return self.place / f"{round:07d}.safetensors"
