"""Kill local runs: at a random time, or while a file is written."""

import shutil
import signal
import tempfile
import time
from pathlib import Path

from tests import processes
from tests.command_line import FINE, assert_same_contents, folders

SMALL = ["run", "nested_quadratic", "--clients", "4", "--participation", "0.5", "--seeds", "2", "--local-steps", "2"]
EVERY_ROUND = ["--algorithm", "Acc-FCSG-M", "SCAFFOLD", "--rounds", "10", "--checkpoint-rounds", "1"]
COMMANDS = {engine: [*SMALL, *EVERY_ROUND, "--engine", engine] for engine in ("stacked", "threads", "reference")}

FILE_OPERATIONS = 50
"""A run of any of the commands has more of them."""


class LocalRuns:
    """Undisturbed runs, made when they are needed, and what kills do to others."""

    def __init__(self, place):
        self.place, self.whole, self.seconds = Path(place), {}, {}

    def undisturbed(self, engine):
        if engine not in self.whole:
            place = self.place / f"whole-{engine}"
            place.mkdir()
            processes.end(processes.start(place, "list"))  # so that the server of processes runs
            began = time.monotonic()
            assert processes.end(processes.start(place, *COMMANDS[engine])) == FINE
            self.seconds[engine] = time.monotonic() - began
            self.whole[engine] = _made_in(place)
        return self.whole[engine]

    def trainer(self, rng):
        """SIGKILL to the process that trains, at any time of its life."""
        engine = rng.choice(list(COMMANDS))
        self.undisturbed(engine)
        moment = rng.uniform(0, self.seconds[engine])

        def kill(place):
            began, process = time.monotonic(), processes.start(place, *COMMANDS[engine])
            process.join(moment)
            process.kill()
            if processes.end(process) == FINE:  # the machine is faster now than it was for the undisturbed run
                self.seconds[engine] = min(self.seconds[engine], time.monotonic() - began)
            return processes.end(process)

        return self._killed_and_resumed(engine, kill), f"{engine}: after {moment:.2f} s"

    def writing(self, rng):
        """SIGKILL between the steps in which a checkpoint or another file is written; half of it is there."""
        engine, operation = rng.choice(list(COMMANDS)), rng.randrange(1, FILE_OPERATIONS + 1)

        def kill(place):
            return processes.end(processes.start(place, *COMMANDS[engine], dies_at=operation))

        return self._killed_and_resumed(engine, kill), f"{engine}: before file operation {operation}"

    def _killed_and_resumed(self, engine, kill):
        """Return whether the kill came in time; raise if the run does not end as the undisturbed one."""
        place = Path(tempfile.mkdtemp(dir=self.place))
        if kill(place) != -signal.SIGKILL:
            shutil.rmtree(place)
            return False
        folder = _made_in(place)
        again = ["resume", folder] if folder else COMMANDS[engine]  # killed before there was anything to resume
        assert processes.end(processes.start(place, *again)) == FINE, (place / "said.txt").read_text()[-2000:]
        assert_same_contents(_made_in(place), self.undisturbed(engine))
        shutil.rmtree(place)
        return True


def _made_in(place):
    """The run folder, once it has its name."""
    named = [path for path in folders(place / "runs") if not path.name.startswith(".")]
    return named[0] if named else None
