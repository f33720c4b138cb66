"""Start the processes of the engine `distributed` on this host, and print the torchrun command for several hosts."""

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
from fedcso.engines import ENGINES, ranks, torchrun
from fedcso.runs.callbacks import Interrupted
from fedcso.runs.folder import RunFolder

PORT = 29500


def needed(engine: str) -> bool:
    """Return whether the engine needs several processes that have not been started yet."""
    return over_ranks(engine) and not torchrun.started()


def over_ranks(engine: str) -> bool:
    """Return whether the engine uses several processes."""
    return ENGINES[engine].over_ranks


class RanksFailed(FedcsoError):
    """The processes of a run ended with an error, which they have printed."""

    def __init__(self, exit_code: int):
        super().__init__(
            f"the processes of the run ended with exit code {exit_code}, for the reason that is said above"
        )
        self.exit_code = exit_code


def on_this_host(folder: RunFolder, processes: int | None, command: Sequence[str]) -> None:
    """Run the rest of a run with several processes on this host; print the command for several hosts.

    Raise `RanksFailed` unless the run has ended; whether some of its runs broke off is its folder's status.
    """
    processes = processes or cores()
    print(
        f"ranks   {processes} processes on this host. For several hosts (HOST is the first one, which has the folder):"
    )
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
            elastic_launch(launch, sys.executable)("-m", "fedcso", "resume", str(folder.path), "--quiet")
    except ChildFailedError as error:
        code = _explained(folder, processes, error.failures)
        if folder.status != "failed":
            raise RanksFailed(code) from None
    except SignalException:
        raise Interrupted(f"stopped. To continue: fedcso resume {folder.path}") from None


def for_several_hosts(processes: int, command: Sequence[str]) -> str:
    """Return the command for each of H hosts, numbered by K from 0."""
    where = f"--nnodes H --node-rank K --master-addr HOST --master-port {PORT} --nproc-per-node {processes}"
    return f"torchrun {where} -m fedcso {shlex.join(command)}"


def _explained(folder: RunFolder, processes: int, failures: dict[int, ProcessFailure]) -> int:
    """Return the exit code of the failed process; raise `RankLost` if a process was killed."""
    codes = {rank: int(failure.exitcode) for rank, failure in failures.items()}
    failed = [code for code in codes.values() if code > 0]
    # The launcher sends SIGTERM to the remaining processes.
    killed = {rank: code for rank, code in codes.items() if code < 0 and (code != -signal.SIGTERM or not failed)}
    if not killed:
        return max(failed)
    folder.mark("interrupted")
    rank, code = min(killed.items(), key=lambda item: (item[1] == -signal.SIGTERM, item[0]))
    raise ranks.RankLost(
        f"rank {rank} of {processes} was killed by {signal.Signals(-code).name}, and the others stopped; all up to "
        f"the last checkpoint is saved. To continue (with any --ranks N): fedcso resume {folder.path}"
    )


@contextmanager
def _environment(processes: int) -> Iterator[None]:
    """Divide the cores among the processes, use the loopback interface, and silence the launcher's log."""
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
    """Raise if a number of ranks is given for an engine without ranks."""
    require_count("ranks", processes)
    if not over_ranks(engine):
        raise InvalidValue("ranks", processes, f"left out: only the engine distributed has ranks, not {engine}")


def require_ranks(engine: str) -> None:
    """Raise if torchrun started several processes for an engine that uses one."""
    if torchrun.size() > 1 and not over_ranks(engine):
        raise FedcsoError(
            f"engine = {engine!r} can't run under torchrun: use --engine distributed, or start it without torchrun"
        )
