"""STEM: stochastic two-sided momentum for ordinary federated learning.

    u_{t+1} = (1/b) Σ_i ∇f(x_t; ξ_i) + (1 − β) ( u_t − (1/b) Σ_i ∇f(x_{t−1}; ξ_i) )
    x_{t+1} = Π_X( x_t − α u_{t+1} ),       x and u averaged over clients after every q steps

This is Acc-FCSG-M where g is the identity, so it shares its code. Clients send x and u, and keep their previous
iterate.

Reference: Khanduri et al., STEM: A Stochastic Two-Sided Momentum Algorithm Achieving Near-Optimal
Sample and Communication Complexities for Federated Learning, NeurIPS 2021.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.algorithms.acc_fcsg_m import AccFCSGM


@dataclass(frozen=True)
class STEM(AccFCSGM):
    """Two-sided momentum for ordinary federated learning: Acc-FCSG-M where g is the identity.

    learning_rate is α, momentum is β (the weight of the NEW gradient).
    """

    use_when: ClassVar[str] = "if nothing is nested and samples are more expensive than computation"
