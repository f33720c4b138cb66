"""Real federations: a SuperLink and SuperNodes as processes of their own, started and stopped by each test."""

from pathlib import Path

import pytest

flwr = pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from tests.federation.real import faults  # noqa: E402 - after it is known that Flower is there
from tests.federation.real.local import Local  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--faults", type=Path, help="append what tests found out to this file, for docs/deployment.md")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    results = item.config.getoption("--faults", None)
    if results and call.when == "call" and report.passed:
        faults.add(item.user_properties, results)
    return report


@pytest.fixture
def start(tmp_path):
    """Makes federations, and stops whatever of them still runs at the end."""
    started = []

    def make(*options, **more):
        local = Local.make(tmp_path / f"federation{len(started)}", *options, **more)
        started.append(local)
        return local

    yield make
    for local in started:
        local.deployment.processes.stop()
