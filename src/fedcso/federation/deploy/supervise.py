"""Keep a process running: python supervise.py PIDFILE COMMAND …  (uses the standard library only)

After a SuperNode has lost its connection, the SuperLink refuses it for about a minute, and the SuperNode exits. It is
therefore restarted until it stays connected. SIGTERM or SIGINT to this process ends both.
"""

import os
import signal
import subprocess
import sys
import time

PAUSE_SECONDS = 5.0


def main(pid_file: str, command: list[str]) -> int:
    """Run the command, restart it whenever it ends, and return after SIGTERM or SIGINT."""
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
