"""What every framework has to do: 16 clients × 5 steps × batch 32 a round, small MNIST CNN, SGD."""

import json
import time

import torch

CLIENTS, LOCAL_STEPS, BATCH, RATE = 16, 5, 32, 0.01
EXAMPLES = LOCAL_STEPS * BATCH
"""A client's: one pass over them is a round's five steps."""


def pictures() -> tuple[torch.Tensor, torch.Tensor]:
    """MNIST-shaped inputs (client, example, 1, 28, 28) and labels (client, example)."""
    rng = torch.Generator().manual_seed(0)
    inputs = torch.randn(CLIENTS, EXAMPLES, 1, 28, 28, generator=rng)
    return inputs, torch.randint(10, (CLIENTS, EXAMPLES), generator=rng)


class Clock:
    """Notes the moments at which rounds end; what comes before the first (starting, warming up) is not counted."""

    def __init__(self) -> None:
        self.moments: list[float] = []

    def tick(self) -> None:
        """A round has ended."""
        self.moments.append(time.perf_counter())

    def tell(self) -> None:
        """Seconds a round, for the process that asked."""
        seconds = (self.moments[-1] - self.moments[0]) / (len(self.moments) - 1)
        print(json.dumps({"seconds_per_round": seconds}), flush=True)
