"""The coordinator's requests to sites; the model travels beside them."""

from dataclasses import asdict, dataclass, field
from typing import Any

from fedcso.federation.wire import Unreadable

COUNTS = "evaluate.counts"
"""The kind of message that asks for counts of scores: Flower sends it to the function `counts` for `evaluate`."""


@dataclass(frozen=True)
class Order:
    """A request to a site. It includes all settings of the run, so that sites need not store them."""

    config: dict[str, Any]
    """The complete flat configuration of the run."""
    sites: list[str]
    """The names of all sites; a site's index here is its client number, which determines its random stream."""
    agreement: dict[str, Any] = field(default_factory=dict)
    """The agreed preparation of the sites' tables, if they have tables."""
    run: str = ""
    """The run, method and seed under which a site stores its local state."""
    algorithm: str = ""
    seed: int = 0
    client: int = -1
    round: int = -1
    remembered: int = -1
    """The last round whose local state is still valid at this site; −1 for none."""
    output_step: int = -1
    seconds: float = 0.0
    """The timeout for the answer."""
    secure: dict[str, Any] = field(default_factory=dict)
    """What a message of a secure sum says: its terms, and what belongs to the message (`fedcso.federation.secure`)."""

    def words(self) -> dict[str, Any]:
        """Return the request as JSON values."""
        return asdict(self)

    @classmethod
    def read(cls, words: dict[str, Any]) -> "Order":
        """Read a request from JSON values."""
        try:
            return cls(**words)
        except TypeError as error:
            raise Unreadable(f"the request is from another version of fedcso ({error})") from error
