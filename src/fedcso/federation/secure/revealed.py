"""The coordinator's note of the sums that sites were asked to reveal: `revealed.json` in the run folder.

It is written before a site is asked. Sites help to reveal one sum of a round only, so if the coordinator is interrupted
before the round is saved, it must repeat the round with the same sites.
"""

import json
from pathlib import Path

from fedcso.core import atomic

FILE = "revealed.json"


class Revealed:
    """For each method and seed, the last round whose sum was to be revealed, and the sites in it."""

    def __init__(self, folder: Path | None = None):
        self.path = folder / FILE if folder else None
        self.last = json.loads(self.path.read_text()) if self.path and self.path.is_file() else {}

    def sites(self, run: str, round: int) -> list[str]:
        """Return the sites in the sum of a round; none if it was not revealed."""
        last = self.last.get(run, {"round": -1, "sites": []})
        return list(last["sites"]) if last["round"] == round else []

    def note(self, run: str, round: int, sites: list[str]) -> None:
        """Note that sites are asked to reveal a sum."""
        self.last[run] = {"round": round, "sites": sites}
        if self.path:
            atomic.write(self.path, json.dumps(self.last, indent=1))
