"""Federated few-shot learning: clients train together without sharing drawings, for characters nobody has seen.

python examples/fewshot.py
"""

from fedcso import Plan
from fedcso.algorithms import FCSGM
from fedcso.engines import run
from fedcso.problems import PROBLEMS


def main(rounds: int = 6, filters: int = 32) -> None:
    """Train on glyphs at eight clients, and test on scripts that are not used for training."""
    task = PROBLEMS["maml"](data="glyphs", clients=8, shots=1, filters=filters, test_tasks=100, client_tasks=2)
    plan = Plan(rounds, local_steps=10, inner_batch=1, evaluate_every=2)
    algorithm = FCSGM(learning_rate=0.9, momentum=0.1)
    trace = run(algorithm, task, plan)
    for row in trace.rows:
        accuracy, interval = row["accuracy"], row["accuracy_interval"]
        print(f"round {row['round']:2}  accuracy on unseen characters {accuracy:.3f} ± {interval:.3f}")


if __name__ == "__main__":
    main()
