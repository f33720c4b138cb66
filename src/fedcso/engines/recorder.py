"""An oracle for many clients that records what a round's steps find, to be checked once a round."""

import torch

from fedcso.core.oracle import Cohort
from fedcso.core.tree import Tree, leaves
from fedcso.engines.job import Job


class Recorder:
    """Records a round's losses, and probes that are finite only if the gradients are.

    Without a projection, a non-finite gradient makes x and all later losses non-finite,
    so the losses suffice as probes.
    """

    def __init__(self, job: Job, settings: int):
        plan = job.plan
        self.oracle = Cohort(job.problem, settings, job.estimator, self.keep, plan.clip, plan.weight_decay)
        self.losses: list[torch.Tensor] = []
        self.probes: list[torch.Tensor] = self.losses if job.problem.project is None else []

    def keep(self, loss: torch.Tensor, gradient: Tree) -> None:
        """Record the loss and gradient of a step."""
        probe = loss
        if self.probes is not self.losses:  # a finite sum has finite summands
            probe = sum((sum_from(leaf, 2) for leaf in leaves(gradient)), loss)
        self.keep_steps(loss.unsqueeze(0), probe.unsqueeze(0))

    def keep_steps(self, losses: torch.Tensor, probes: torch.Tensor) -> None:
        """Record the losses and probes of several steps, which are their leading axis."""
        self.losses.append(losses)
        if self.probes is not self.losses:
            self.probes.append(probes)

    def found(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the losses and probes of all steps."""
        losses = _in_a_row(self.losses)
        return losses, losses if self.probes is self.losses else _in_a_row(self.probes)


def _in_a_row(parts: list[torch.Tensor]) -> torch.Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def sum_from(leaf: torch.Tensor, axis: int) -> torch.Tensor:
    """Sum over all axes from the given one on."""
    return leaf.flatten(axis).sum(-1) if leaf.ndim > axis else leaf
