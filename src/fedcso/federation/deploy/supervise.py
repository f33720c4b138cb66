"""Keep a process running: python supervise.py PIDFILE COMMAND …  (needs nothing but Python's own library)

A SuperNode whose connection broke off is refused for about a minute after it comes back, and ends; so it is started
again until it stays. SIGTERM or SIGINT to this process ends both.
"""

import os
import signal
import subprocess
import sys
import time

PAUSE_SECONDS = 5.0


def main(pid_file: str, command: list[str]) -> int:
    """Start the command, again and again; returns when asked to end."""
    child: subprocess.Popen[bytes] | None = None
    ending = False

    def end(number: int, frame: object) -> None:
        nonlocal ending
        ending = True
        if child and child.poll() is None:
            child.terminate()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    while not ending:
        child = subprocess.Popen(command)
        with open(pid_file, "w") as file:
            file.write(str(child.pid))
        code = child.wait()
        if not ending:
            print(f"fedcso: the SuperNode ended with code {code}; starting it again", file=sys.stderr, flush=True)
            time.sleep(PAUSE_SECONDS)
    if os.path.exists(pid_file):
        os.unlink(pid_file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
