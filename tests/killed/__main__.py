"""Kill processes by SIGKILL at random moments, and check that every run ends bit-identical to an undisturbed one.

    python -m tests.killed --number 100 --seed 0 --results docs/killed.jsonl --page docs/killed.md

Each kill is drawn from (seed, number). Results are appended to a file, and what is in it is not done again: the command
can be stopped at any time, and goes on when it is called again. At the end, and with --show, it prints a table.
"""

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from tests.killed.federation import Federation
from tests.killed.local import LocalRuns

OF_HUNDRED = {
    "trainer": 35,
    "writing": 35,
    "coordinator": 6,
    "superlink": 6,
    "supernode": 6,
    "executor": 6,
    "client": 6,
}
"""How often each kind of process is killed, of 100 kills; those of a federation take a minute or more."""

TITLES = {
    "trainer": "the process of a local run",
    "writing": "a local run while it writes a checkpoint or a table",
    "coordinator": "the coordinator's app",
    "superlink": "the SuperLink",
    "supernode": "a site's SuperNode",
    "executor": "a site's executor",
    "client": "a process that answers a message at a site",
}
AT_MOST = 50
"""How many moments are drawn until one comes before the process has ended."""


def plan(number):
    """What is killed, in order."""
    kinds = [kind for kind, share in OF_HUNDRED.items() for _ in range(round(share * number / 100))]
    return (kinds + ["trainer"] * number)[:number]


def carry_out(seed, number, results, kinds):
    """Do what is not in the results yet, and append to them."""
    done = {(one["seed"], one["number"]) for one in read(results)}
    todo = [(n, kind) for n, kind in enumerate(plan(number)) if (seed, n) not in done and kind in kinds]
    with tempfile.TemporaryDirectory() as place:
        runs, federation = LocalRuns(place), Federation(place)
        try:
            for n, kind in todo:
                began, target = time.monotonic(), runs if kind in ("trainer", "writing") else federation
                one = {"seed": seed, "number": n, "kind": kind} | kill_once(target, kind, random.Random(f"{seed} {n}"))
                one["seconds"] = round(time.monotonic() - began, 1)
                with results.open("a") as file:
                    file.write(json.dumps(one) + "\n")
                how = "identical" if one["identical"] else f"DIFFERENT: {one['why']}"
                print(
                    f"{n + 1:4} of {number}  {TITLES[kind]}, {one['moment']}: {how} ({one['seconds']} s)",
                    flush=True,
                )
        finally:
            federation.stop()


def kill_once(target, kind, rng):
    """One kill, with another moment if the first one came too late; says whether the run ended as if undisturbed."""
    for _ in range(AT_MOST):
        try:
            in_time, moment = getattr(target, kind)(rng)
        except AssertionError as why:
            return {"moment": "?", "identical": False, "why": str(why)[:2000]}
        if in_time:
            return {"moment": moment, "identical": True}
    return {
        "moment": "never in time",
        "identical": False,
        "why": f"{AT_MOST} moments came after the end of the process",
    }


def read(results):
    """The results so far."""
    return [json.loads(line) for line in results.read_text().splitlines()] if results.is_file() else []


def table(done):
    """The results by kind, in Markdown."""
    lines = ["| killed by SIGKILL | kills | bit-identical at the end |", "| --- | ---: | ---: |"]
    for kind, title in TITLES.items():
        some = [one for one in done if one["kind"] == kind]
        lines.append(f"| {title} | {len(some)} | {sum(one['identical'] for one in some)} |")
    lines.append(f"| all | {len(done)} | {sum(one['identical'] for one in done)} |")
    return "\n".join(lines)


def page(options, found):
    """The results as a page of the documentation; says how much is left."""
    left = options.number - len(found)
    rest = (
        f"**{left} of {options.number} kills are still to be done**: the same command goes on with them. "
        if left
        else ""
    )
    return PAGE.format(number=options.number, seed=options.seed, rest=rest, table=table(found))


PAGE = """\
# Killed at any moment

Made by `python -m tests.killed --number {number} --seed {seed} --results docs/killed.jsonl --page docs/killed.md` in a
clone of the repository. Each line of `docs/killed.jsonl` is a process that was killed by SIGKILL at a moment that was
drawn from the seed and the number of the line. {rest}A moment after the end of the process was drawn again.

{table}

Local runs were started again with `fedcso resume`, or from the beginning if there was no run folder yet. Everything in
the run folder that does not tell times was compared with an undisturbed run, byte by byte; of files that were being
written when the process was killed, half was there. In the federations (two sites on loopback, TLS and keys) all sites
had to answer in every round, so that a round from which a killed site was missing was repeated; after the coordinator's
app or the SuperLink was killed, the SuperLink was started again if necessary, and the run was resumed. The shared
quantities and the tables of metrics and clients were compared, bit by bit.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("killed.jsonl"))
    parser.add_argument(
        "--kinds", nargs="+", choices=list(TITLES), default=list(TITLES), help="only these; by default all"
    )
    parser.add_argument("--show", action="store_true", help="only print the table of the results so far")
    parser.add_argument("--page", type=Path, help="also write the table to this page")
    options = parser.parse_args()
    if not options.show:
        carry_out(options.seed, options.number, options.results, options.kinds)
    found = [one for one in read(options.results) if one["seed"] == options.seed]
    print(table(found))
    if options.page:
        options.page.write_text(page(options, found))
    if not all(one["identical"] for one in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
