"""Keep processes running: python supervise.py PIDFILE COMMAND … [-- COMMAND …]  (uses the standard library only)

After a SuperNode has lost its connection, the SuperLink refuses it for about a minute, and the SuperNode exits. It is
therefore restarted until it stays connected. The commands are a unit, as a SuperNode and its executor: when one process
ends, the others are ended, too, and all are restarted. SIGTERM or SIGINT to this process ends all of them. The id of
the first process is in PIDFILE.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

LOOK_SECONDS = 0.1
PAUSE_SECONDS = 5.0
GRACE_SECONDS = 10.0
"""How long a process may take to end after SIGTERM."""

BETWEEN = "--"
"""The argument between two commands."""


def main(pid_file: str, commands: Sequence[Sequence[str]]) -> int:
    """Run the commands, restart them whenever one ends, and return after SIGTERM or SIGINT."""
    ending = False

    def end(number: int, frame: object) -> None:
        nonlocal ending
        ending = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    while not ending:
        unit = [subprocess.Popen(command) for command in commands]
        with open(pid_file, "w") as file:
            file.write(str(unit[0].pid))
        while not ending and all(process.poll() is None for process in unit):
            time.sleep(LOOK_SECONDS)
        ended = {place: code for place, process in enumerate(unit) if (code := process.poll()) is not None}
        _stop(unit)
        again = time.monotonic() + PAUSE_SECONDS
        for place, code in ended.items() if not ending else ():
            name = os.path.basename(commands[place][0])  # the rest of the command holds the node's configuration
            print(f"fedcso: {name} ended with code {code}; starting it again", file=sys.stderr, flush=True)
        while not ending and time.monotonic() < again:
            time.sleep(LOOK_SECONDS)
    if os.path.exists(pid_file):
        os.unlink(pid_file)
    return 0


def _stop(unit: Sequence[subprocess.Popen[bytes]]) -> None:
    """End all processes, by SIGKILL if they don't end in time."""
    for process in unit:
        process.terminate()
    for process in unit:
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _split(arguments: Sequence[str]) -> list[list[str]]:
    """Return the commands that are separated by `--`."""
    commands: list[list[str]] = [[]]
    for argument in arguments:
        if argument == BETWEEN:
            commands.append([])
        else:
            commands[-1].append(argument)
    return commands


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], _split(sys.argv[2:])))
