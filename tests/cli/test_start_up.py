"""What people wait for before anything happens: which packages a command imports."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "scipy", "matplotlib", "pandas", "sklearn")


def heavy_modules(code: str) -> list[str]:
    """Run code in a new process and return the heavy packages that it has imported."""
    report = f"import sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_the_overview_imports_nothing_heavy(arguments):
    assert heavy_modules(f"from fedcso.cli.main import main; main({arguments!r})") == []


def test_an_unknown_command_imports_nothing_heavy():
    assert heavy_modules("from fedcso.cli.main import main; assert main(['rnu']) == 2") == []


def test_the_package_imports_nothing_but_torch():
    assert heavy_modules("import fedcso; fedcso.Task") == ["torch"]


def test_the_site_part_of_a_federation_imports_nothing_but_torch():
    pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")
    assert heavy_modules("import fedcso.federation.client") == ["torch"]
