"""The SuperLink gives the coordinator's app minutes to start, and finds out within one that it has died."""

from datetime import timedelta

import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from flwr.server.superlink.linkstate.sql_linkstate import SqlLinkState
from flwr.supercore.constant import TaskType
from flwr.supercore.corestate import sql_corestate
from flwr.supercore.object_store.in_memory_object_store import InMemoryObjectStore
from flwr.superlink.federation.noop_federation_manager import NoOpFederationManager

from fedcso.federation.deploy.superlink import LOST_SECONDS, START_SECONDS, be_patient_at_start


@pytest.fixture
def state(tmp_path, monkeypatch):
    for name in ("HEARTBEAT_DEFAULT_INTERVAL", "HEARTBEAT_PATIENCE", "now"):
        monkeypatch.setattr(sql_corestate, name, getattr(sql_corestate, name))  # so that they are put back
    be_patient_at_start()
    made = SqlLinkState(str(tmp_path / "state.db"), NoOpFederationManager(), InMemoryObjectStore())
    made.initialize()
    return made


def later(seconds):
    before = sql_corestate.now
    sql_corestate.now = lambda: before() + timedelta(seconds=seconds)


@pytest.mark.filterwarnings("ignore:No path_separator:DeprecationWarning")  # of how Flower calls Alembic
def test_an_app_may_take_minutes_to_start_and_a_silent_one_is_found_out(state):
    task = state.create_task(TaskType.SERVER_APP, run_id=1)
    token = state.claim_task(task)
    later(START_SECONDS - 5)
    assert state.get_task_by_token(token) is not None
    assert state.activate_task(task)
    later(LOST_SECONDS - 5)
    assert state.acknowledge_task_heartbeat(task)
    later(LOST_SECONDS + 1)
    assert state.get_task_by_token(token) is None
