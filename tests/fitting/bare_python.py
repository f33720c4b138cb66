"""A Python that has onnxruntime, numpy, pandas and what these require, and nothing else: no fedcso, no torch.

The packages are links to those installed here, so that making the environment takes no time.
"""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

WANTED = ("onnxruntime", "numpy", "pandas")


def link_packages(folder: Path) -> Path:
    """Fill a folder with links to the wanted packages and all that they require."""
    folder.mkdir()
    waiting, seen = list(WANTED), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # for another system, say
            continue
        waiting += [re.match(r"[\w.-]+", line)[0] for line in package.requires or [] if "extra ==" not in line]
        for top in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(package.locate_file(top)))
    return folder


def run_bare(packages: Path, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with these packages alone: -S keeps it from looking for others."""
    environment = {"PYTHONPATH": str(packages), "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-S", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd, env=environment)
