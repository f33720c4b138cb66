"""Invariant logistic regression with one process for each client, connected by gloo, as usual in research code.

`benchmarks.invariant_logistic` starts it. Each process does what the ordinary loop does for one client, and averages x
and u with `all_reduce` after every q steps.
"""

import multiprocessing
import socket
import sys
import time
from multiprocessing.queues import Queue

import torch
import torch.distributed as dist
import torch.nn.functional as F

from fedcso.problems import InvariantLogistic


def worker(
    rank: int, clients: int, port: int, rounds: int, local_steps: int, inner: int, answers: "Queue[float]"
) -> None:
    """Run one client; the first one measures the time."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=clients)
    problem = InvariantLogistic()
    d, truth = problem.dimension, problem.clients(1)[0].truth
    torch.manual_seed(rank)
    x, u = torch.zeros(d, requires_grad=True), torch.zeros(d)
    for number in range(rounds + 1):
        if number == 1:  # the first round is a warm-up
            dist.barrier()
            started = time.perf_counter()
        for _ in range(local_steps):
            a = torch.randn(d)
            label = torch.sign(a @ truth)
            eta = a + problem.noise * torch.randn(inner, d)
            loss = F.softplus(-label * (eta.mean(0) @ x)) + problem.regulariser(x)
            (gradient,) = torch.autograd.grad(loss, x)
            u = 0.9 * u + 0.1 * gradient
            with torch.no_grad():
                x -= 0.01 * u
        with torch.no_grad():
            for shared in (x, u):
                dist.all_reduce(shared)
                shared /= clients
    dist.barrier()
    if rank == 0:
        answers.put((time.perf_counter() - started) / (rounds * local_steps))
    dist.destroy_process_group()


def seconds_per_step(clients: int, rounds: int, local_steps: int, inner: int) -> float:
    """Return the seconds per step of FCSG-M with one process for each client, without their start."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fedcso.problems", "fedcso.engines"])  # load torch once instead of in each process
    answers: Queue[float] = context.Queue()
    every = [
        context.Process(target=worker, args=(rank, clients, port, rounds, local_steps, inner, answers))
        for rank in range(clients)
    ]
    for process in every:
        process.start()
    for process in every:
        process.join()
    return answers.get()


if __name__ == "__main__":
    print(seconds_per_step(*(int(argument) for argument in sys.argv[1:])))
