"""fedcso, with its default engine."""

import sys

from benchmarks.peers.work import BATCH, LOCAL_STEPS, RATE, Clock, pictures
from fedcso.algorithms import FedAvg
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.datasets import Examples
from fedcso.engines import run
from fedcso.models.small_cnn import SmallCNN
from fedcso.problems import Classification


def main(rounds: int) -> None:
    clock = Clock()
    clients = [Examples(inputs, labels) for inputs, labels in zip(*pictures(), strict=True)]
    plan = Plan(rounds, LOCAL_STEPS, BATCH, evaluate_every=rounds)
    problem = Classification(SmallCNN)
    run(FedAvg(RATE), Task(problem, clients), plan, callbacks=[lambda progress: clock.tick()])
    clock.report()


if __name__ == "__main__":
    main(int(sys.argv[1]))
