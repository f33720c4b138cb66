"""A killed process leaves a message that the SuperNode answers, at whatever moment it was killed."""

import hashlib
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

import uvicorn
from flwr.app import Context, Message, RecordDict
from flwr.common import now
from flwr.proto.runtime_pb2 import AcquireTaskRequest, PullAppMessagesRequest, PullTaskInputRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.fab import Fab
from flwr.supercore.inflatable.inflatable_object import get_object_tree
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode.main import create_app
from flwr.supernode.nodestate import NodeStateFactory

from fedcso.federation.deploy.executor import connect, report_killed
from fedcso.federation.exchange import ERRORS

RUN, NODE = 7, 3
DIED = 8


@pytest.fixture
def supernode(monkeypatch):
    """Flower's own, with one message; returns its address and its state."""
    states = NodeStateFactory(objectstore_factory=ObjectStoreFactory())
    state = states.state()
    state.set_node_id(NODE)
    digest = state.store_fab(Fab(hashlib.sha256(b"app").hexdigest(), b"app", {}))
    state.store_run(replace(Run.create_empty(RUN), fab_hash=digest))
    state.set_run_series_context(state.get_run(RUN).series_id, Context(RUN, NODE, {}, RecordDict(), {}))
    state.create_task(task_type=TaskType.CLIENT_APP, run_id=RUN, fab_hash=digest)
    for name, value in (("_run_id", RUN), ("_node_id", 1), ("_task_id", 1)):  # of the coordinator
        monkeypatch.setattr(TaskIdentity, name, value)
    message = Message(RecordDict(), NODE, "train")
    message.metadata.__dict__["_message_id"] = message.object_id
    state.object_store.preregister(RUN, get_object_tree(message))
    state.store_message(message)
    server = uvicorn.Server(uvicorn.Config(create_app(states), host="127.0.0.1", port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the SuperNode did not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"127.0.0.1:{port}", state
    server.should_exit = True
    thread.join()


STAGES = [
    [],
    [lambda runtime: runtime.PullTaskInput(PullTaskInputRequest())],
    [
        lambda runtime: runtime.PullTaskInput(PullTaskInputRequest()),
        lambda runtime: runtime.PullMessages(PullAppMessagesRequest()),
    ],
]


def answers(supernode, stages, report):
    """The errors with which a message is answered, after the process that had it was killed and a minute has passed."""
    address, state = supernode
    request = AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])
    with closing(connect(address)) as runtime:
        token = runtime.AcquireTask(request).token
    with closing(connect(address, token)) as runtime:
        for stage in stages:
            stage(runtime)
    if report:
        report_killed(address, token)
    for record in state.task_token_store.values():
        record.active_until = now() - timedelta(seconds=1)
    return [reply.error.code for reply in state.get_messages_legacy(is_reply=True)]


@pytest.mark.parametrize("stages", STAGES, ids=["before the task", "before the message", "with the message"])
def test_a_killed_process_is_reported_whatever_it_had_done(supernode, stages):
    assert answers(supernode, stages, report=True) == [DIED]
    assert DIED in ERRORS


def test_flower_alone_leaves_a_message_unanswered_that_was_not_fetched(supernode):
    assert answers(supernode, STAGES[1], report=False) == []  # if this fails, `report_killed` is no longer needed
