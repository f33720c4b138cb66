"""What a coordinator asks of a site, in words; the model itself travels beside it."""

from dataclasses import asdict, dataclass, field
from typing import Any

from fedcso.federation.wire import Unreadable


@dataclass(frozen=True)
class Order:
    """A question or a round's work. Sites get the settings with every order: they keep none of a run's."""

    config: dict[str, Any]
    """The run's settings, complete."""
    sites: list[str]
    """All sites by name; a site's number, from which its randomness comes, is its place here."""
    agreement: dict[str, Any] = field(default_factory=dict)
    """What the sites' own tables are prepared by, where they have such."""
    run: str = ""
    """The run, method and seed, by which a site keeps its local state."""
    algorithm: str = ""
    seed: int = 0
    client: int = -1
    round: int = -1
    remembered: int = -1
    """The last round in which this site counted and whose local state still means something; −1 for none."""
    output_step: int = -1
    seconds: float = 0.0
    """How long an answer is waited for; later it is of no use."""

    def words(self) -> dict[str, Any]:
        """As it travels."""
        return asdict(self)

    @classmethod
    def read(cls, words: dict[str, Any]) -> "Order":
        """As it arrived."""
        try:
            return cls(**words)
        except TypeError as error:
            raise Unreadable(f"an order of another version of fedcso ({error})") from error
