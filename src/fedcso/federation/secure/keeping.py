"""What a site keeps between the messages of a secure sum: its secrets, and which sum it has last helped to reveal.

Each message of a sum is answered at most once, and in order: `take` removes what was kept, so that a message that comes
a second time, or at the same time, finds nothing. What is kept has the stage that the next message must be of. After a
site has revealed shares for the sum of a round, it takes part in that round again only for a sum over the same sites:
the difference of two sums could be a single update. A coordinator that was interrupted repeats the round in this way.
"""

import json
import os
from pathlib import Path
from typing import Any

from fedcso.core import atomic
from fedcso.federation.memory import Memory
from fedcso.federation.secure.party import Party
from fedcso.federation.secure.terms import Terms
from fedcso.federation.sovereignty.policy import Refused

OWNER_ONLY = 0o600


class Keeping:
    """The files of one run at a site."""

    def __init__(self, folder: Path, run: str):
        place = Memory(folder, run).place  # checks the name
        self.place = folder / "secure" / place.relative_to(folder / "local")

    def keep(self, stage: str, party: Party) -> None:
        """Keep what the site knows until the message of the next stage; what was kept before is lost."""
        self.place.mkdir(parents=True, exist_ok=True)
        content = json.dumps({"stage": stage, "party": party.words()})
        atomic.write(self._session, content, mode=OWNER_ONLY)

    def take(self, stage: str, terms: Terms) -> Party:
        """Return what was kept, and remove it; raise `Refused` if it was for another stage or for other terms."""
        taken = self._session.with_name(f".session-{os.getpid()}")
        try:
            os.rename(self._session, taken)
            words = json.loads(taken.read_text())
        except FileNotFoundError:
            raise Refused("there is no sum under way: a message that was answered before, or out of order") from None
        finally:
            taken.unlink(missing_ok=True)
        party = Party(**words["party"])
        if words["stage"] != stage or party.agreed.digest() != terms.digest():
            raise Refused(f"a message of another sum, or out of order: the next one was to be {words['stage']}")
        return party

    def require_new(self, terms: Terms) -> None:
        """Raise `Refused` if a sum of a later round was revealed already, or if the session is the last one again."""
        if self._last["round"] > terms.round:
            raise Refused(f"the sum of round {self._last['round'] + 1} is revealed, so round {terms.round + 1} is over")
        if terms.session == self._last["session"]:
            raise Refused("a message of a sum that is revealed already")

    def require_only_sum(self, party: Party) -> None:
        """Raise `Refused` if another sum of the same round was revealed already."""
        self.require_new(party.agreed)
        if self._last["round"] == party.agreed.round and self._last["sites"] != party.survivors:
            raise Refused(
                f"the sum of round {party.agreed.round + 1} over {', '.join(self._last['sites'])} is revealed; with "
                f"one over {', '.join(party.survivors)}, single updates could be computed"
            )

    def note_revealed(self, party: Party) -> None:
        """Note that this site reveals shares for a sum, before it does."""
        self.require_only_sum(party)
        terms = party.agreed
        content = {"session": terms.session, "round": terms.round, "sites": party.survivors}
        atomic.write(self.place / "revealed.json", json.dumps(content))

    @property
    def _session(self) -> Path:
        return self.place / "session.json"

    @property
    def _last(self) -> dict[str, Any]:
        path = self.place / "revealed.json"
        nothing = {"session": "", "round": -1, "sites": []}
        return dict(json.loads(path.read_text())) if path.is_file() else nothing
