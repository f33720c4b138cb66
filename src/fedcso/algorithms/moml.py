"""MOML: memory-based meta-learning, with one adapted model tracked for each TASK.

    y_i ← (1 − γ) y_i + γ (x_t − λ∇L_i(x_t)),       u ← (1 − β) u + β (1/b) Σ_i (I − λ∇²L_i(x_t)) ∇L_i(y_i),
    x ← x − α u

This is SOX with tasks for ξ (its local version averages x and u over clients), so it shares the code of SOX. It keeps
one model per task, so it is for a few fixed tasks only (`maml` with `tasks`), and refuses more than fit into memory.
Clients send x and u.

Reference: Wang, Yuan, Ying, Yang, Memory-Based Optimization Methods for Model-Agnostic Meta-Learning and Personalized
Federated Learning, JMLR 2023.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.algorithms.sox import SOX


@dataclass(frozen=True)
class MOML(SOX):
    """Memory-based meta-learning: SOX with one tracked model for each of a few fixed tasks.

    learning_rate is α, tracking is γ, momentum is β (1 for none).
    """

    use_when: ClassVar[str] = "for a few fixed tasks, each met many times"
