"""Labelled pictures, the form of image data sets."""

from typing import NamedTuple

from fedcso.datasets.examples import Examples


class Images(NamedTuple):
    """Pictures for training and for testing, split as published.

    Inputs are uint8 (pictures, channels, height, width), which takes a quarter of the memory of floats; the problem
    decides how to scale them. Labels are int64.
    """

    train: Examples
    test: Examples

    def summary(self) -> str:
        """Return a description of the size, in words."""
        shape = "×".join(map(str, self.train.inputs.shape[1:]))
        sizes = ", ".join(f"{len(examples.labels)} {split}" for split, examples in self._asdict().items())
        return f"pictures of {shape} ({sizes}), {len(set(self.train.labels.tolist()))} classes"
