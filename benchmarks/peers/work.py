"""The work of every framework: in each round 16 clients do 5 steps of SGD with batches of 32, on the small CNN."""

import json
import time

import torch

CLIENTS, LOCAL_STEPS, BATCH, RATE = 16, 5, 32, 0.01
EXAMPLES = LOCAL_STEPS * BATCH
"""The number of examples of a client; the five steps of a round are one pass over them."""


def pictures() -> tuple[torch.Tensor, torch.Tensor]:
    """Return MNIST-shaped inputs (client, example, 1, 28, 28) and labels (client, example)."""
    rng = torch.Generator().manual_seed(0)
    inputs = torch.randn(CLIENTS, EXAMPLES, 1, 28, 28, generator=rng)
    return inputs, torch.randint(10, (CLIENTS, EXAMPLES), generator=rng)


class Clock:
    """Records when rounds end; the time until the end of the first round (start, warm-up) is not counted."""

    def __init__(self) -> None:
        self.moments: list[float] = []

    def tick(self) -> None:
        """Record the end of a round."""
        self.moments.append(time.perf_counter())

    def report(self) -> None:
        """Print the seconds per round as JSON, for the process that started this one."""
        seconds = (self.moments[-1] - self.moments[0]) / (len(self.moments) - 1)
        print(json.dumps({"seconds_per_round": seconds}), flush=True)
