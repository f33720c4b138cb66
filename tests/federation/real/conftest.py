"""Real federations: a SuperLink and SuperNodes as processes of their own, started and stopped by each test."""

import pytest

flwr = pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from tests.federation.real.local import Local  # noqa: E402 - after it is known that Flower is there


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
