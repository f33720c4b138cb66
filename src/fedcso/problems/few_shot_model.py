"""What a trained few-shot model needs beside its weights to adapt to new classes; a run exports it with them."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from fedcso.core.errors import FedcsoError, require_count
from fedcso.datasets.characters import ImageForm

FILE = "few-shot.json"
"""The name of the file."""


@dataclass(frozen=True)
class FewShotModel:
    """The network, the form of its images, and the steps of adaptation by which it was evaluated."""

    ways: int
    """The number of classes of the tasks on which it was trained and evaluated."""
    inner_rate: float
    test_steps: int
    form: ImageForm
    filters: int = 64
    pooling: bool = False
    fresh_last_layer: bool = False
    """True if adaptation starts from a new last layer, because the trained one belongs to the training classes."""

    def __post_init__(self) -> None:
        require_count("filters", self.filters)

    def files(self) -> dict[str, str]:
        """Return the file to export with the weights."""
        return {FILE: json.dumps(asdict(self) | {"form": self.form._asdict()}, indent=2) + "\n"}

    @classmethod
    def from_json(cls, text: str, name: str) -> "FewShotModel":
        """Read the file; raise `FedcsoError` if it was not written by `files`."""
        try:
            values: dict[str, Any] = json.loads(text)
            return cls(**values | {"form": ImageForm(**values["form"])})
        except (KeyError, TypeError, ValueError) as error:
            raise FedcsoError(f"{name} can't be read ({error}): export the model again") from error
