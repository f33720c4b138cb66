"""The page with the licences of all packages that fedcso needs, from their metadata:  python -m docs.licences

It describes the environment in which it is called, so call it in one with all extras (`make licences`).
"""

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PAGE = Path(__file__).parent / "licences.md"

GROUPS = {"": "always", "flower": "for real sites", "parquet excel images predict sweep track": "for other extras"}
"""Extras of fedcso, and when they are needed; those for development are not listed."""

LONGEST = 120
"""A licence with more characters is a text and no name."""

HEAD = """\
# Licences of dependencies

fedcso has the licence Apache-2.0. These are the packages that it needs, directly or through others, with the licences
that they name in their metadata (made by `python -m docs.licences`, with the versions that were installed then). No
package is part of fedcso's own files. Tools for development and documentation are not listed.
"""


def main() -> None:
    """Write the page."""
    seen: set[str] = set()
    parts = [HEAD]
    for extras, when in GROUPS.items():
        found = dict(_needed(Requirement(f"fedcso[{','.join(extras.split())}]"), set()))
        rows = [
            f"| {name} | {one.version} | {licence(one)} |" for name, one in sorted(found.items()) if name not in seen
        ]
        seen |= found.keys()
        parts.append(
            "\n".join([f"## Needed {when}\n", "| package | version | licence |", "| --- | --- | --- |", *rows, ""])
        )
    PAGE.write_text("\n".join(parts))
    print(PAGE)


def _needed(requirement: Requirement, above: set[tuple[str, str]]) -> Iterator[tuple[str, Distribution]]:
    """Yield the packages that a requirement needs, with those that they need."""
    for extra in requirement.extras or {""}:
        key = (_normal(requirement.name), extra)
        if key in above:
            continue
        above.add(key)
        try:
            found = distribution(requirement.name)
        except PackageNotFoundError:
            continue  # not on this platform
        if key[0] != "fedcso":
            yield key[0], found
        for one in map(Requirement, found.requires or []):
            if one.marker is None or any(one.marker.evaluate({"extra": name}) for name in {"", extra}):
                yield from _needed(one, above)


def licence(package: Distribution) -> str:
    """Return the licence that a package names: as an expression, in one line, or by classifiers."""
    about = package.metadata
    classified = [
        text.rpartition(" :: ")[2] for text in about.get_all("Classifier") or [] if text.startswith("License")
    ]
    stated = [text for name in ("License-Expression", "License") for text in about.get_all(name) or []]
    named = [*stated, ", ".join(classified)]
    return next((text for text in _in_a_line(named) if 0 < len(text) <= LONGEST), "see its files")


def _in_a_line(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield " ".join(text.split()).replace("|", "/")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
