"""Compare compiled steps with the ordinary loop, on invariant logistic regression with m = 1 (the cheapest arithmetic).

    python -m benchmarks.compiled

Drawing the samples, which no engine can avoid, is timed separately.
"""

import sys
from collections.abc import Sequence
from functools import partial

from benchmarks.invariant_logistic import CLIENTS, LOCAL_STEPS, MOMENTA, RATES, SEEDS, ordinary_loop
from benchmarks.results import save
from benchmarks.timing import MEASURES_ITSELF, Alternatives, as_rows, describe_machine, interleave, middle_round, report
from fedcso.algorithms import FCSGM
from fedcso.core.estimator import draw_for_all
from fedcso.core.plan import Plan
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.core.workers import one_thread
from fedcso.engines import run_grid
from fedcso.estimators.plain import plain
from fedcso.problems import InvariantLogistic

INNER, ROUNDS, STEPS = 1, 40, 64
"""m, the rounds of a timed run, and q, which is the number of steps whose samples are drawn together."""


def draw(problem: InvariantLogistic, seeds: Sequence[int]) -> None:
    """Draw all samples of a run, as the engines for small models do."""
    clients = list(problem.clients(CLIENTS)) * len(seeds)
    with one_thread():
        for round in range(ROUNDS):
            rngs = [stream(seed, n, round) for seed in seeds for n in range(CLIENTS)]
            draw_for_all(plain, problem, clients, rngs, STEPS, 1, INNER)


class OneByOne(InvariantLogistic):
    """The same problem, whose clients' samples are drawn one client at a time."""

    sample_together = None  # type: ignore[assignment]


def main(quick: bool = False) -> None:
    describe_machine()
    problem = InvariantLogistic()
    clients = problem.clients(CLIENTS)
    plan = Plan(ROUNDS, STEPS, inner_batch=INNER, evaluate_every=ROUNDS)
    grid = [FCSGM(rate, momentum) for rate in RATES for momentum in MOMENTA]
    runs = len(grid) * len(SEEDS)
    work: Alternatives = {
        "ordinary loop": (partial(ordinary_loop, problem, 2, 0.1, INNER), 2 * LOCAL_STEPS),
        "drawing one client at a time": (partial(draw, OneByOne(), SEEDS[:1]), ROUNDS * STEPS),
        "drawing alone": (partial(draw, problem, SEEDS[:1]), ROUNDS * STEPS),
        f"drawing alone, grid of {runs}": (partial(draw, problem, SEEDS), ROUNDS * STEPS),
    }
    for name in ("stacked", "compiled"):
        for label, settings, seeds in ((name, [FCSGM()], SEEDS[:1]), (f"{name}, grid of {runs}", grid, SEEDS)):
            start = partial(run_grid, settings, Task(problem, clients), plan, seeds, engine=name)
            work[label] = (partial(middle_round, start, STEPS), MEASURES_ITSELF)
    timings = interleave(work, repetitions=2 if quick else 5)
    report("One step of 16 clients, FCSG-M, m = 1", timings, "ordinary loop", "step")
    loop = timings["ordinary loop"].median
    found = {}
    for label, count in (("", 1), (f", grid of {runs}", runs)):
        ours, drawn = timings[f"compiled{label}"].median, timings[f"drawing alone{label}"].median
        found[f"{count} runs"] = {"times_faster": count * loop / ours, "times_drawing": ours / drawn}
        print(
            f"  compiled, {count} runs: {count * loop / ours:.0f} times faster than the loop, "
            f"{ours / drawn:.1f} times as long as drawing"
        )
    save("compiled", step=as_rows(timings, "ordinary loop"), found=found)


if __name__ == "__main__":
    main("--quick" in sys.argv)
