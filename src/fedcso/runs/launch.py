"""Starting the processes of the engine `distributed`: what `torchrun` does on one host, and its command for several."""

import logging
import os
import shlex
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from fedcso.core.errors import FedcsoError, InvalidValue, require_count
from fedcso.core.workers import cores
from fedcso.engines import ENGINES, ranks
from fedcso.runs.callbacks import Interrupted
from fedcso.runs.folder import RunFolder

PORT = 29500


def needed(engine: str) -> bool:
    """True if an engine wants several processes, and they are not there yet."""
    return over_ranks(engine) and not ranks.started()


def over_ranks(engine: str) -> bool:
    """True for the engine that wants several processes."""
    return ENGINES[engine].over_ranks


def on_this_host(folder: RunFolder, processes: int | None, command: Sequence[str]) -> int:
    """Carry out what is left of a run by several processes here; says how to do it on several hosts."""
    processes = processes or cores()
    print(f"ranks   {processes} processes on this host. On several (HOST is the first, which keeps the folder):")
    print(f"        {for_several_hosts(processes, command)}")
    sys.stdout.flush()
    try:
        with _environment(processes), tempfile.TemporaryDirectory() as logs:
            launch = LaunchConfig(
                min_nodes=1,
                max_nodes=1,
                nproc_per_node=processes,
                run_id=uuid.uuid4().hex,
                rdzv_backend="c10d",
                rdzv_endpoint="localhost:0",
                local_addr="localhost",
                max_restarts=0,
                logs_specs=DefaultLogsSpecs(log_dir=logs),
            )
            elastic_launch(launch, sys.executable)("-m", "fedcso", "resume", str(folder.path))
    except ChildFailedError as error:
        return _explained(folder, processes, error.failures)
    except SignalException:
        raise Interrupted(f"stopped. To go on: fedcso resume {folder.path}") from None
    return 0


def for_several_hosts(processes: int, command: Sequence[str]) -> str:
    """What to type on each of H hosts; K counts them from 0."""
    where = f"--nnodes H --node-rank K --master-addr HOST --master-port {PORT} --nproc-per-node {processes}"
    return f"torchrun {where} -m fedcso {shlex.join(command)}"


def _explained(folder: RunFolder, processes: int, failures: dict[int, ProcessFailure]) -> int:
    """The exit code of the process that failed; one that was killed can't have said so itself."""
    codes = {rank: int(failure.exitcode) for rank, failure in failures.items()}
    failed = [code for code in codes.values() if code > 0]
    # SIGTERM is what the launcher itself sends to those who are left.
    killed = {rank: code for rank, code in codes.items() if code < 0 and (code != -signal.SIGTERM or not failed)}
    if not killed:
        return max(failed)
    folder.mark("interrupted")
    rank, code = min(killed.items(), key=lambda item: (item[1] == -signal.SIGTERM, item[0]))
    raise ranks.RankLost(
        f"rank {rank} of {processes} was killed by {signal.Signals(-code).name}, and the others stopped. All up to the "
        f"last checkpoint is kept. To go on: fedcso resume {folder.path} (with --ranks N, also by another number)"
    )


@contextmanager
def _environment(processes: int) -> Iterator[None]:
    """Processes share the cores and talk over the loopback interface; the launcher's own messages are ours."""
    settings = {"OMP_NUM_THREADS": str(max(1, cores() // processes)), "GLOO_SOCKET_IFNAME": "lo"}
    added = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(added)
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        for name in added:
            del os.environ[name]


def require_over_ranks(engine: str, processes: int) -> None:
    """A number of ranks is for the engine that has some."""
    require_count("ranks", processes)
    if not over_ranks(engine):
        raise InvalidValue("ranks", processes, f"left out: the engine {engine} has none (distributed has)")


def require_ranks(engine: str) -> None:
    """Several processes that all play the whole run would be a mistake."""
    if ranks.size() > 1 and not over_ranks(engine):
        raise FedcsoError(
            f"engine = {engine!r} is not made for torchrun; choose --engine distributed, or do without it"
        )
