"""Labelled pictures, the form in which image data sets come."""

from typing import NamedTuple

from fedcso.datasets.examples import Examples


class Images(NamedTuple):
    """The pictures to train on and those to test on, as they were published.

    Inputs are uint8 (pictures, channels, height, width): a quarter of the memory of floats, and what is done with
    them (divided by 255, standardised) is for the problem to say. Labels are int64.
    """

    train: Examples
    test: Examples

    def summary(self) -> str:
        """Return in words how much there is."""
        shape = "×".join(map(str, self.train.inputs.shape[1:]))
        sizes = ", ".join(f"{len(examples.labels)} {split}" for split, examples in self._asdict().items())
        return f"pictures of {shape} ({sizes}), {len(set(self.train.labels.tolist()))} classes"
