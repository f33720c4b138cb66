"""Run the tour and the quick tests with each Python of the machine:  python tests/pythons.py TESTS …

This is `make test-python`. Each version has an environment of its own, `.venv-3.12`, which is kept. Where the package
index has no small build of torch for a version, plain pip installs gigabytes for graphics cards. Uses the standard
library only.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from shutil import which

ROOT = Path(__file__).parent.parent
EXTRAS = "excel,images,parquet,predict,sweep"


def versions(project: Path = ROOT / "pyproject.toml") -> list[str]:
    """Return the versions of Python that the package is for, as its classifiers name them."""
    classifiers = "\n".join(tomllib.loads(project.read_text())["project"]["classifiers"])
    return re.findall(r"Python :: (3\.\d+)$", classifiers, re.M)


def candidates(version: str) -> Iterator[str]:
    """Return where an interpreter may be: on the path, or among pyenv's."""
    if found := which(f"python{version}"):
        yield found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python"), reverse=True))


def find_interpreter(version: str) -> str | None:
    """Return an interpreter of this version that starts (a shim of pyenv may not); None if the machine has none."""
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in candidates(version):
        answer = subprocess.run([candidate, "-c", ask], capture_output=True, text=True, check=False)
        if answer.stdout.strip() == version:
            return candidate
    return None


def try_version(version: str, interpreter: str, tests: list[str]) -> dict[str, int]:
    """Return the exit codes of installing, of the tour and of the tests; what follows a failure is left out."""
    place = ROOT / f".venv-{version}"
    python = str(place / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--no-compile", f"{ROOT}[{EXTRAS}]", "pytest", "hypothesis"]
    steps = {
        "environment": [interpreter, "-m", "venv", str(place)],
        "install": install,
        "tour": [python, "-m", "fedcso", "tour", "--out", str(place / "runs")],
        "tests": [python, "-m", "pytest", "-p", "no:cacheprovider", *tests],
    }
    codes = {}
    for name, command in steps.items():
        print(f"\nPython {version}: {name}", flush=True)
        codes[name] = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": "src"}, check=False).returncode
        if codes[name]:
            break
    return codes


def main(tests: list[str]) -> int:
    """Try every version, print what came of it, and return 1 if anything failed."""
    lines, failed = [], False
    for version in versions():
        interpreter = find_interpreter(version)
        if interpreter is None:
            lines.append(f"Python {version}: not on this machine")
            continue
        codes = try_version(version, interpreter, tests)
        failed |= any(codes.values())
        lines.append(
            f"Python {version}: " + ", ".join(f"{name} {'FAILED' if code else 'ok'}" for name, code in codes.items())
        )
    print("", *lines, sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
