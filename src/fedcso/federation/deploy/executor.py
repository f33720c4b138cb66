"""Start a process for each of a site's messages by forking: python executor.py HOST:PORT  (of the SuperNode)

Flower's own executor starts a program for every message, which imports Flower, torch and fedcso before it can answer.
This one imports them once, and forks. The coordinator's app is loaded only in a forked process, which answers one
message and ends: nothing of one message is left for the next, and this process never runs the app's code.
"""

import gc
import importlib
import multiprocessing
import os
import sys
import time

from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.retry import make_simple_http_retry_invoker
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.utils import disable_process_dumping
from flwr.supernode.runtime.run_clientapp import run_clientapp

from fedcso.algorithms import ALGORITHMS
from fedcso.problems import PROBLEMS

MODULES = ("fedcso.federation.client", "fedcso.datasets.tables.describe", "sklearn.datasets", "sklearn.metrics")
"""What messages need besides methods and problems; some problems import the latter only when they use them."""

LOOK_SECONDS = 0.2
"""How often to ask the SuperNode, on this machine, whether it has a message."""


def main(supernode: str) -> None:
    """Answer the SuperNode's messages until SIGTERM or SIGINT."""
    disable_process_dumping(strict=False)  # as in Flower's executor: other processes must not read tokens here
    load_what_messages_need()
    gc.freeze()  # so that forked processes share this memory
    runtime = RuntimeHttpClient.from_server_address(
        supernode,
        insecure=True,
        root_certificates=None,
        interceptors=[RuntimeVersionHttpInterceptor(component_name="SuperExec")],
        retry_invoker=make_simple_http_retry_invoker(),
    )
    request = AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])
    own = {"insecure": True, "parent_pid": os.getpid()}  # it ends when this process does
    forking = multiprocessing.get_context("fork")
    while True:
        task = runtime.AcquireTask(request)
        if task.token:
            forking.Process(target=run_clientapp, args=(supernode, task.token), kwargs=own).start()
        multiprocessing.active_children()  # reaps those that have ended
        time.sleep(LOOK_SECONDS)


def load_what_messages_need() -> None:
    """Import the site's part, all methods and all problems."""
    for module in MODULES:
        importlib.import_module(module)
    for table in (ALGORITHMS, PROBLEMS):
        for name in table:
            table[name]  # imports its file


if __name__ == "__main__":
    main(sys.argv[1])
