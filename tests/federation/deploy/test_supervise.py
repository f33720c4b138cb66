"""What was started together runs, ends and is started again together."""

import os
import signal
import subprocess
import sys
import time

import pytest

from fedcso.federation.deploy import supervise
from fedcso.federation.deploy.commands import supervisor_command

IMPATIENT = f"""
import sys
sys.path.insert(0, {os.path.dirname(supervise.__file__)!r})
import supervise
supervise.PAUSE_SECONDS, supervise.GRACE_SECONDS = 0.05, 0.2
sys.exit(supervise.main(sys.argv[1], supervise._split(sys.argv[2:])))
"""
SLEEPS = ["/bin/sh", "-c", "echo $$; exec sleep 60"]
STUBBORN = ["/bin/sh", "-c", "trap '' TERM; echo $$; while true; do sleep 0.05; done"]
FAILS = ["/bin/sh", "-c", "sleep 0.1; exit 3"]


@pytest.fixture
def run(tmp_path):
    """Supervise commands, and end whatever still runs at the end."""
    started = []

    def start(*commands):
        _, _, pid_file, *rest = supervisor_command(tmp_path, *commands)
        command = [sys.executable, "-c", IMPATIENT, pid_file, *rest]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.terminate()
        process.communicate()
        assert process.returncode == 0


def eventually(condition):
    """Whether a condition holds, soon if not yet."""
    for _ in range(200):
        if condition():
            return True
        time.sleep(0.02)
    return False


def gone(pid):
    """Whether a process has ended and is not even a zombie."""
    return eventually(lambda: not os.path.exists(f"/proc/{pid}"))


def test_what_ended_is_started_again(run):
    process = run(["/bin/sh", "-c", "echo started; exit 3"])
    assert process.stdout.readline() == "started\n"
    assert process.stderr.readline() == "fedcso: sh ended with code 3; starting it again\n"
    assert process.stdout.readline() == "started\n"


def test_when_one_of_a_unit_ends_the_others_end_and_all_are_started_again(run):
    for commands in ((SLEEPS, FAILS), (FAILS, STUBBORN)):
        process = run(*commands)
        first = int(process.stdout.readline())
        second = int(process.stdout.readline())
        assert first != second
        assert gone(first)
        assert "ended with code 3" in process.stderr.readline()


def test_a_killed_process_is_started_again_with_its_id_in_the_file(run, tmp_path):
    process = run(SLEEPS)
    first = int(process.stdout.readline())
    file = tmp_path / "supernode.pid"
    assert eventually(lambda: file.is_file() and file.read_text() == str(first))
    os.kill(first, signal.SIGKILL)
    second = int(process.stdout.readline())
    assert eventually(lambda: file.read_text() == str(second))
    process.terminate()
    assert gone(second)
    process.wait()
    assert not file.exists()
