"""Find a robust centre of patients whose data stay at their hospitals:  min_x (1/N) Σ_n E_ξ √(1 + ‖E[η | ξ] − x‖²)"""

import torch

from fedcso import Problem, Task, stream


class RobustLocation(Problem):
    def init(self, rng):
        return torch.zeros(2)

    def sample_outer(self, data, rng, shape):  # ξ: patients of the hospital
        return data[torch.randint(len(data), shape, generator=rng)]

    def sample_inner(self, data, rng, xi, m):  # η | ξ: m noisy measurements of each
        return xi.unsqueeze(-2) + torch.randn(*xi.shape[:-1], m, 2, generator=rng)

    def inner(self, x, xi, eta):  # ĝ = (1/m) Σ_j (η_j − x): the mean is inside f
        return eta.mean(-2) - x

    def outer(self, y, xi):  # f(y) = √(1 + ‖y‖²)
        return (1 + y.square().sum(-1)).sqrt()


def task(hospitals: int = 8, patients: int = 100) -> Task:
    """Return a task with patients around (3, 3)."""
    rngs = [stream(seed=0, client=n, round=0) for n in range(hospitals)]
    return Task(RobustLocation(), [torch.randn(patients, 2, generator=rng) + 3 for rng in rngs])
