"""Run folders: everything about a run in one place, with files written atomically."""

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError
from fedcso.core.user_code import Source
from fedcso.core.version import __version__

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "matplotlib", "safetensors", "jsonargparse", "rich")

BEFORE = {"auprc": {"bounded": False, "logarithm": False}}
"""By problem, settings that folders of earlier versions lack: what was done when there were none."""


@dataclass(frozen=True)
class RunFolder:
    """An existing run folder."""

    path: Path

    @classmethod
    def create(
        cls,
        root: Path,
        name: str,
        config: dict[str, Any],
        data: dict[str, Any],
        sources: Sequence[Source] = (),
        files: Mapping[str, bytes] = MappingProxyType({}),
    ) -> "RunFolder":
        """Make a new folder `<date>_<name>_<hash>`; it appears with settings and environment, or not at all.

        `data` says what the run's data are told by. A copy of the user's own `sources` stays in the folder; `files` are
        others that the run needs, by name.
        """
        text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
        stamp = time.strftime("%Y-%m-%d_%H%M%S")
        root.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
        # The temporary name is unique, so two runs started in the same second get different folders.
        digest = hashlib.sha256((text + stamp + temporary.name).encode()).hexdigest()[:6]
        os.chmod(temporary, 0o755)
        try:
            atomic.write(temporary / "config.yaml", text)
            kept = [KeptSource.of(source) for source in sources]
            for source, copy in zip(sources, kept, strict=True):
                (temporary / copy.kept).parent.mkdir(exist_ok=True)
                atomic.write(temporary / copy.kept, source.content)
            for file, content in files.items():
                (temporary / file).parent.mkdir(parents=True, exist_ok=True)
                atomic.write(temporary / file, content)
            found = environment() | {
                "seeds": config.get("seeds"),
                "data": data,
                "sources": [asdict(copy) for copy in kept],
            }
            atomic.write(temporary / "env.json", json.dumps(found, indent=2))
            atomic.write(temporary / "status.json", json.dumps({"status": "running"}))
            final = root / f"{stamp}_{name}_{digest}"
            temporary.rename(final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return cls(final)

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Open an existing run folder; raise if it is not one."""
        whole = all((path / name).is_file() for name in ("config.yaml", "status.json"))
        if path.name.startswith(".new-") or not whole:
            raise FedcsoError(f"{path} is not a run folder (it has no config.yaml and status.json)")
        return cls(path)

    def write(self, name: str, content: bytes | str) -> Path:
        """Write a file atomically."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(target, content)
        return target

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder for this process; the lock is released when the process ends, however it ends."""
        with (self.path / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FedcsoError(f"another process is using {self.path}: wait until it ends, or stop it") from None
            # Remove temporary files that killed processes left behind.
            for place in self.path.glob("**/"):
                for leftover in place.glob(".*.*"):
                    leftover.unlink(missing_ok=True)
            yield

    def busy(self) -> bool:
        """Return whether a process has locked the folder."""
        with (self.path / ".lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def config(self) -> dict[str, Any]:
        """Return the complete flat configuration of the run."""
        settings = read_yaml(self.path / "config.yaml", "settings")
        return {**BEFORE.get(str(settings.get("problem")), {}), **settings}

    def environment(self) -> dict[str, Any]:
        """Return the recorded environment: versions, machine, data and the user's files."""
        return dict(json.loads((self.path / "env.json").read_text()))

    def require_same_sources(self) -> None:
        """Raise if one of the user's files has changed since the run started."""
        for record in self.environment().get("sources", []):  # folders of earlier versions have none
            source = KeptSource(**record)
            back = f"put back the copy that was kept (cp {self.path / source.kept} {source.path})"
            if not source.exists():
                raise FedcsoError(f"{source.path}, which {self.path} depends on, is missing; {back}")
            if not source.unchanged():
                raise FedcsoError(
                    f"{source.path} has changed since {self.path} was started, so resuming would mix two versions: "
                    f"{back} to resume, or start a new run with the changed file"
                )

    @property
    def status(self) -> str:
        """The status: `running` (also after a crash), `interrupted`, `failed` or `done`."""
        return str(json.loads((self.path / "status.json").read_text())["status"])

    def mark(self, status: str) -> None:
        """Set the status."""
        self.write("status.json", json.dumps({"status": status}))


@dataclass(frozen=True)
class KeptSource:
    """A user's file that a run depends on, and its copy in the run folder."""

    path: str
    """The path as given."""
    kept: str
    """The path of the copy in the run folder."""
    sha256: str

    @classmethod
    def of(cls, source: Source) -> "KeptSource":
        """Return the name of the copy: the file's name and a digest."""
        digest = source.fingerprint
        return cls(str(source.path), f"sources/{source.path.stem}-{digest[:8]}{source.path.suffix}", digest)

    def exists(self) -> bool:
        """Whether the file still exists."""
        return Path(self.path).is_file()

    def unchanged(self) -> bool:
        """Whether the file is unchanged."""
        path = Path(self.path)
        return Source(path, path.read_bytes()).fingerprint == self.sha256


MOST_BYTES, MOST_VALUES = 1_000_000, 100_000
"""The largest YAML file, and the most values in it: references can write exponentially many in a few lines."""


def read_yaml(path: Path, what: str) -> dict[str, Any]:
    """Return the settings in a YAML file; raise if it can't be read."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise FedcsoError(f"{what}: {path} is larger than {MOST_BYTES} bytes, the limit for settings")
        content = yaml.safe_load(path.read_text())
        if _count(content, {}) > MOST_VALUES:
            raise FedcsoError(f"{what}: {path} holds more than {MOST_VALUES} values, the limit for settings")
    except RecursionError as error:
        raise FedcsoError(f"{what}: {path} can't be read: it is nested too deeply") from error
    except (OSError, ValueError, yaml.YAMLError) as error:  # also a date that does not exist
        raise FedcsoError(f"{what}: {path} can't be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise FedcsoError(f"{what}: {path} must contain lines `name: value`")
    return content


def _count(value: Any, counted: dict[int, int]) -> int:
    """Return the number of values in a value, as often as each is referred to."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in counted:
        parts = value.values() if isinstance(value, dict) else value
        counted[id(value)] = 1 + sum(_count(part, counted) for part in parts)
    return counted[id(value)]


def environment() -> dict[str, Any]:
    """Return versions, commit and machine."""
    versions = {"python": platform.python_version(), "fedcso": __version__}
    for package in PACKAGES:
        versions[package] = metadata.version(package)
    import torch  # late: commands that only look at folders do not need it

    return {
        "versions": versions,
        "commit": git_commit(),
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
            "torch_threads": torch.get_num_threads(),
            "cuda": torch.cuda.is_available(),
        },
    }


def git_commit() -> str | None:
    """Return the commit of the checkout, with `+` if files have changed; None outside a checkout."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        answer = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=True)
        return answer.stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
