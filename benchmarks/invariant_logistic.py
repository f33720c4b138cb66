"""Compare stacking with the ordinary loop over clients, on invariant logistic regression (m = 10, σ₂ = 1.5).

    python -m benchmarks.invariant_logistic

Both engines for small models are timed: `stacked`, and `compiled` (which needs a C++ compiler, is timed without
compiling, and is not part of the quick run). So is the usual setup of research code, with one process for each client
(`benchmarks.gloo_processes`). The ordinary loop is a straightforward implementation: for each setting, seed, step and
client it draws a sample, computes a gradient and takes a step, and it averages after every q steps. Its time for Figure
1's grid is that of one setting times the number of settings and seeds, because it runs them one after the other.
"""

import sys
from functools import partial

import torch
import torch.nn.functional as F

from benchmarks.gloo_processes import seconds_per_step
from benchmarks.results import save
from benchmarks.timing import MEASURES_ITSELF, Alternatives, as_rows, describe_machine, interleave, middle_round, report
from fedcso.algorithms import FCSG, FCSGM
from fedcso.core.algorithm import Algorithm
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.engines import run, run_grid
from fedcso.problems import InvariantLogistic

RATES = (0.01, 0.005, 0.001)
MOMENTA = (0.001, 0.01, 0.1, 0.5, 0.9)
SEEDS = (0, 1, 2)
CLIENTS, LOCAL_STEPS, INNER = 16, 50, 10


def ordinary_loop(
    problem: InvariantLogistic, rounds: int, momentum: float | None = None, inner: int = INNER
) -> torch.Tensor:
    """Run one setting of FCSG or FCSG-M with autograd, and return the final mean of x."""
    d = problem.dimension
    truth = problem.clients(1)[0].truth
    models = [torch.randn(d).requires_grad_() for _ in range(CLIENTS)]
    estimates = [torch.zeros(d) for _ in range(CLIENTS)]
    for _ in range(rounds):
        for _ in range(LOCAL_STEPS):
            for n, x in enumerate(models):
                a = torch.randn(d)
                label = torch.sign(a @ truth)
                eta = a + problem.noise * torch.randn(inner, d)
                loss = F.softplus(-label * (eta.mean(0) @ x)) + problem.regulariser(x)
                (gradient,) = torch.autograd.grad(loss, x)
                if momentum is not None:
                    gradient = estimates[n] = (1 - momentum) * estimates[n] + momentum * gradient
                with torch.no_grad():
                    x -= 0.01 * gradient
        mean = torch.stack([x.detach() for x in models]).mean(0)
        models = [mean.clone().requires_grad_() for _ in range(CLIENTS)]
        if momentum is not None:
            estimates = [torch.stack(estimates).mean(0)] * CLIENTS
    return mean


def main(quick: bool = False) -> None:
    describe_machine()
    problem = InvariantLogistic()
    clients = problem.clients(CLIENTS)

    def plan(rounds: int) -> Plan:
        return Plan(rounds, LOCAL_STEPS, inner_batch=INNER, evaluate_every=rounds)

    few, many = 2, 20
    settings = len(RATES) * (1 + len(MOMENTA)) * len(SEEDS)

    every: list[list[Algorithm]] = [
        [FCSG(rate) for rate in RATES],
        [FCSGM(rate, momentum) for rate in RATES for momentum in MOMENTA],
    ]

    def grid() -> None:
        for method in every:
            run_grid(method, Task(problem, clients), plan(many), SEEDS)

    def compiled_steps(grids: list[list[Algorithm]], seeds: tuple[int, ...]) -> float:
        runs = [
            partial(run_grid, method, Task(problem, clients), plan(many), seeds, engine="compiled") for method in grids
        ]
        return sum(middle_round(start, LOCAL_STEPS) for start in runs)

    def processes() -> float:
        return seconds_per_step(CLIENTS, few, LOCAL_STEPS, INNER)

    with_compiler: Alternatives = {
        "compiled, FCSG-M": (lambda: compiled_steps([[FCSGM()]], SEEDS[:1]), MEASURES_ITSELF),
        f"compiled, grid of {settings}": (lambda: compiled_steps(every, SEEDS), MEASURES_ITSELF),
    }
    timings = interleave(
        {
            "16 gloo processes, FCSG-M": (processes, MEASURES_ITSELF),
            "ordinary loop, FCSG": (lambda: ordinary_loop(problem, few), few * LOCAL_STEPS),
            "ordinary loop, FCSG-M": (lambda: ordinary_loop(problem, few, 0.1), few * LOCAL_STEPS),
            "reference engine, FCSG-M": (
                lambda: run(FCSGM(), Task(problem, clients), plan(few), engine="reference"),
                few * LOCAL_STEPS,
            ),
            "stacked, FCSG": (
                lambda: run(FCSG(), Task(problem, clients), plan(many), engine="stacked"),
                many * LOCAL_STEPS,
            ),
            "stacked, FCSG-M": (
                lambda: run(FCSGM(), Task(problem, clients), plan(many), engine="stacked"),
                many * LOCAL_STEPS,
            ),
            f"stacked, grid of {settings}": (grid, many * LOCAL_STEPS),
        }
        | ({} if quick else with_compiler),
        repetitions=2 if quick else 5,
    )
    report("One step of 16 clients, one setting", timings, "ordinary loop, FCSG", "step")
    one = {name: timings[f"ordinary loop, {name}"].median for name in ("FCSG", "FCSG-M")}
    loop = len(SEEDS) * len(RATES) * (one["FCSG"] + len(MOMENTA) * one["FCSG-M"])
    engines = ["stacked"] if quick else ["stacked", "compiled"]
    ours = {name: timings[f"{name}, grid of {settings}"].median for name in engines}
    in_processes = timings["16 gloo processes, FCSG-M"].median
    print(
        f"\nFigure 1's grid for one (m, σ₂): {len(RATES)} learning rates × (FCSG + {len(MOMENTA)} momenta of "
        f"FCSG-M) × {len(SEEDS)} seeds × {CLIENTS} clients, one step\n"
        f"  ordinary loop {1e3 * loop:.0f} ms, 16 processes {1e3 * settings * in_processes:.0f} ms "
        f"(= {settings} × one setting)"
    )
    for name, seconds in ours.items():
        one_setting = in_processes / timings[f"{name}, FCSG-M"].median
        print(
            f"  {name} {1e3 * seconds:.2f} ms: {loop / seconds:.0f} times faster than the loop, "
            f"{settings * in_processes / seconds:.0f} than the processes; one setting {one_setting:.0f}"
        )
    save(
        "invariant_logistic",
        step=as_rows(timings, "ordinary loop, FCSG"),
        grid={"settings": settings, "loop": loop, "processes": settings * in_processes, **ours},
    )


if __name__ == "__main__":
    main("--quick" in sys.argv)
