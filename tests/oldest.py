"""Print the oldest versions that pyproject.toml allows, for `make test-oldest`:  python tests/oldest.py EXTRA …

Of the packages that fedcso always needs, and of those of some extras. torch is left as it is: of versions before the
newest allowed one, plain pip installs gigabytes for graphics cards. Uses the standard library only.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
AS_THEY_ARE = ("torch", "fedcso")
"""Not pinned; fedcso is how extras name each other."""


def oldest(extras, project=PROJECT):
    """The requirements, with the lower bound as the version."""
    about = tomllib.loads(project.read_text())["project"]
    needed = [*about["dependencies"], *(one for extra in extras for one in about["optional-dependencies"][extra])]
    return [pinned(requirement) for requirement in needed if not requirement.startswith("fedcso[")]


def pinned(requirement):
    """`numpy>=1.26,<3` becomes `numpy==1.26`."""
    name, bound = re.fullmatch(r"([\w.-]+(?:\[[\w,]+\])?)>=([\d.]+)(?:,.*)?", requirement).groups()
    return requirement if name in AS_THEY_ARE else f"{name}=={bound}"


if __name__ == "__main__":
    print("\n".join(oldest(sys.argv[1:])))
