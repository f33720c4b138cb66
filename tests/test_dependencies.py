"""What `make test-oldest`, `make audit` and `make licences` are made of."""

import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from docs.licences import PAGE
from tests.audit import NOT_CHECKED, VULNERABLE, told
from tests.oldest import PROJECT, oldest, pinned

ABOUT = tomllib.loads(PROJECT.read_text())["project"]
EXTRAS = ABOUT["optional-dependencies"]
FOR_USERS = [extra for extra in EXTRAS if extra not in ("dev", "docs", "peers")]


def test_all_bounds_can_be_pinned():
    for requirement in oldest(FOR_USERS):
        name, _, version = requirement.partition("==")
        assert Requirement(requirement).name in name
        assert version or name.startswith("torch>=")


@pytest.mark.parametrize(
    ("requirement", "oldest"),
    [("numpy>=1.26", "numpy==1.26"), ("flwr[dp]>=1.41,<1.42", "flwr[dp]==1.41"), ("torch>=2.6,<2.14",) * 2],
)
def test_the_lower_bound_becomes_the_version(requirement, oldest):
    assert pinned(requirement) == oldest


FINE, FLAWED = {"name": "a", "version": "1", "vulns": []}, {"name": "b", "version": "2", "vulns": [{"id": "CVE-1"}]}
SKIPPED = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "code", "says"),
    [
        ([FINE], 0, "1 packages checked, 0 with known"),
        ([FINE, FLAWED], VULNERABLE, "b 2: CVE-1, fixed in no version yet"),
        ([FINE, SKIPPED], NOT_CHECKED, "no answer about 1 packages: c"),
        ([SKIPPED], NOT_CHECKED, "so nothing is known"),
        ([FLAWED, SKIPPED], VULNERABLE, "CVE-1"),
        ([FINE, {"name": "fedcso", "skip_reason": "editable"}], 0, "1 packages checked"),
    ],
)
def test_what_could_not_be_checked_is_not_called_fine(packages, code, says, capsys):
    assert told(packages) == code
    assert says in capsys.readouterr().out


def test_all_direct_dependencies_of_users_are_on_the_page_of_licences():
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    versions = {row[0].strip("| "): row[1] for row in rows if row[1] not in ("version", "---")}
    for one in map(Requirement, [*ABOUT["dependencies"], *(name for extra in FOR_USERS for name in EXTRAS[extra])]):
        assert Version(versions[one.name.lower()]) in one.specifier, one
