"""Compare the pool of threads with the ordinary loop, on a small CNN with MNIST-shaped data.

    python -m benchmarks.threads

FedAvg with 16 clients, 5 steps per round and batches of 32. The ordinary loop trains one client after the other with
`torch.optim.SGD`, once with torch's default number of threads and once with one thread.
"""

import copy
import sys

import torch
import torch.nn.functional as F

from benchmarks.results import save
from benchmarks.timing import as_rows, describe_machine, interleave, report
from fedcso.algorithms import FedAvg
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.datasets import Examples
from fedcso.engines import run
from fedcso.models.small_cnn import SmallCNN
from fedcso.problems import Classification

CLIENTS, LOCAL_STEPS, BATCH = 16, 5, 32
ROUNDS, QUICK_ROUNDS = 2, 1


def ordinary_loop(clients: list[Examples], intra_op: int, rounds: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(intra_op)
    server = SmallCNN()
    for _ in range(rounds):
        total = {name: torch.zeros_like(value) for name, value in server.state_dict().items()}
        for data in clients:
            model = copy.deepcopy(server)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            for _ in range(LOCAL_STEPS):
                chosen = torch.randint(len(data.labels), (BATCH,))
                optimizer.zero_grad()
                F.cross_entropy(model(data.inputs[chosen]), data.labels[chosen]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            for name, value in model.state_dict().items():
                total[name] += value / CLIENTS
        server.load_state_dict(total)
    torch.set_num_threads(before)


def main(quick: bool = False) -> None:
    describe_machine()
    clients = [
        Examples(torch.randn(500 + 10 * n, 1, 28, 28), torch.randint(10, (500 + 10 * n,))) for n in range(CLIENTS)
    ]
    problem = Classification(SmallCNN)
    rounds = QUICK_ROUNDS if quick else ROUNDS
    plan = Plan(rounds, LOCAL_STEPS, outer_batch=BATCH, evaluate_every=rounds)
    default = torch.get_num_threads()
    timings = interleave(
        {
            f"ordinary loop, {default} torch threads": (lambda: ordinary_loop(clients, default, rounds), rounds),
            "ordinary loop, 1 torch thread": (lambda: ordinary_loop(clients, 1, rounds), rounds),
            "threads engine": (lambda: run(FedAvg(), Task(problem, clients), plan, engine="threads"), rounds),
        },
        repetitions=2 if quick else 5,
    )
    report("One round of FedAvg, 16 clients", timings, f"ordinary loop, {default} torch threads", "round")
    save("threads", round=as_rows(timings, f"ordinary loop, {default} torch threads"))


if __name__ == "__main__":
    main("--quick" in sys.argv)
