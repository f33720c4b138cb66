"""What people wait for before anything happens: which packages a command imports."""

import subprocess
import sys

import pytest

from fedcso.cli.commands import COMMANDS

HEAVY = ("torch", "scipy", "matplotlib", "pandas", "sklearn")


def heavy_modules(code: str) -> list[str]:
    """Run code in a new process and return the heavy packages that it has imported."""
    report = f"import sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


EACH = """
from fedcso.cli.main import main
for arguments in {commands!r}:
    try:
        assert main(arguments) == 0
    except SystemExit as end:  # jsonargparse ends the process after the help
        assert end.code == 0
"""


def test_help_and_lists_import_nothing_heavy():
    commands = [[], ["--help"], ["--version"], ["list"], *([command, "--help"] for command in COMMANDS)]
    assert heavy_modules(EACH.format(commands=commands)) == []


@pytest.mark.parametrize("arguments", [["rnu"], ["list", "nothing"], ["run"], ["data", "gte", "digits"]])
def test_a_mistake_is_reported_without_importing_anything_heavy(arguments):
    assert heavy_modules(f"from fedcso.cli.main import main; assert main({arguments!r}) == 2") == []


def test_the_check_notices_what_is_imported():
    commands = [["run", "invariant_logistic", "--print-config"]]
    assert heavy_modules(EACH.format(commands=commands)) == ["torch"]


def test_the_package_imports_nothing_but_torch():
    assert heavy_modules("import fedcso; fedcso.Task") == ["torch"]


def test_the_site_part_of_a_federation_imports_nothing_but_torch():
    pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")
    assert heavy_modules("import fedcso.federation.client") == ["torch"]
