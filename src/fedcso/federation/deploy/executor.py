"""Start a process for each of a site's messages by forking: python executor.py HOST:PORT FOLDER

HOST:PORT is the SuperNode, FOLDER the site's.

Flower's own executor starts a program for every message, which imports Flower, torch and fedcso before it can answer.
This one imports them once, and forks. The coordinator's app is loaded only in a forked process, which answers one
message and ends: nothing of one message is left for the next, and this process never runs the app's code. Only apps
that the site has approved are loaded (`fedcso.federation.sovereignty.gate`).
"""

import gc
import importlib
import multiprocessing
import os
import sys
import time
from contextlib import closing, suppress
from multiprocessing.context import ForkProcess
from pathlib import Path

import httpx
from flwr.proto.runtime_pb2 import AcquireTaskRequest, PullAppMessagesRequest, PullTaskInputRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor, RuntimeVersionHttpInterceptor
from flwr.supercore.protobuf.client import ProtobufClientInterceptor
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.utils import disable_process_dumping
from flwr.supernode.runtime.run_clientapp import run_clientapp

from fedcso.algorithms import ALGORITHMS
from fedcso.federation.sovereignty.gate import guard
from fedcso.problems import PROBLEMS

MODULES = ("fedcso.federation.client", "fedcso.datasets.tables.describe", "sklearn.datasets", "sklearn.metrics")
"""What messages need besides methods and problems; some problems import the latter only when they use them."""

LOOK_SECONDS, SELDOM_SECONDS = 0.1, 1.0
"""How soon to ask the SuperNode again whether it has a message: after one at first, and after a long time without."""

SLOWER = 1.1
"""Every look is later than the one before by this factor, so looking adds at most a tenth to what is waited for."""


def main(supernode: str, folder: Path) -> None:
    """Answer the SuperNode's messages for as long as the supervisor of both runs."""
    disable_process_dumping(strict=False)  # as in Flower's executor: other processes must not read tokens here
    load_what_messages_need()
    guard(folder)
    gc.freeze()  # so that forked processes share this memory
    runtime = connect(supernode)
    request = AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])
    fork, supervisor, pause = multiprocessing.get_context("fork"), os.getppid(), LOOK_SECONDS
    answering: dict[str, ForkProcess] = {}
    while os.getppid() == supervisor:  # which starts the SuperNode, too
        with suppress(httpx.TransportError):  # the SuperNode takes longer to start
            token = runtime.AcquireTask(request).token
            if token:
                answering[token] = fork.Process(target=run_clientapp, args=(supernode, token, True, None, os.getpid()))
                answering[token].start()
                pause = LOOK_SECONDS
        for token, process in list(answering.items()):
            if not process.is_alive():
                del answering[token]
                if process.exitcode and process.exitcode < 0:  # killed, for want of memory perhaps
                    report_killed(supernode, token)
        time.sleep(pause)
        pause = min(SLOWER * pause, SELDOM_SECONDS)
    for process in answering.values():
        process.terminate()


def connect(supernode: str, token: str = "") -> RuntimeHttpClient:
    """Return a connection to the SuperNode; with a token, for the task that the token belongs to."""
    interceptors: list[ProtobufClientInterceptor] = [RuntimeVersionHttpInterceptor(component_name="SuperExec")]
    if token:
        interceptors.append(RuntimeTokenHttpInterceptor(token))
    return RuntimeHttpClient.from_server_address(supernode, True, None, interceptors=interceptors)


def report_killed(supernode: str, token: str) -> None:
    """Make sure that the coordinator is told of a process that was killed before it could answer.

    The SuperNode misses the heartbeats of the process, and tells the coordinator within a minute that it died; but only
    if the process has started its task and fetched its message. Otherwise the message would stay unanswered until the
    round times out. So do here what is left of the two.
    """
    with closing(connect(supernode, token)) as runtime, suppress(httpx.TransportError):
        with suppress(httpx.HTTPStatusError):  # the task has been started
            runtime.PullTaskInput(PullTaskInputRequest())
        with suppress(httpx.HTTPStatusError):  # the task has ended
            runtime.PullMessages(PullAppMessagesRequest())


def load_what_messages_need() -> None:
    """Import the site's part, all methods and all problems."""
    for module in MODULES:
        importlib.import_module(module)
    for table in (ALGORITHMS, PROBLEMS):
        for name in table:
            table[name]  # imports its file


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C reaches the supervisor, too
        main(sys.argv[1], Path(sys.argv[2]))
