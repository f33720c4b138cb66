"""Give fedcso hostile answers from sites and hostile files, and print a table of what became of them.

    python -m tests.hostile --number 10000 --seed 0 --page docs/hostile.md

`--number` answers, and as many configurations, tables and archives. Each is made from (seed, number), so one that does
harm can be made again. The command ends with code 1 if one did.
"""

import argparse
import tempfile
import time
from pathlib import Path

from tests.hostile import coordinator, inputs

STEPS = 20
"""How often progress is told."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, help="also write the result to this page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        told = told_progress("answers", options.number)
        longest, grown = coordinator.attack(options.seed, options.number, first, told)
        told = told_progress("files", options.number)
        found, also_grown, harm = inputs.attack(options.seed, options.number, second, told)
    for line in harm:
        print(f"HARM  {line}")
    too_much = [
        f"all files of one kind took {one.longest:.1f} s" for one in found.values() if one.longest > inputs.SECONDS
    ]
    too_much += [f"the answers took {longest:.1f} s"] if longest > coordinator.SECONDS else []
    too_much += [f"{grown:.0f} MB for answers"] if grown > coordinator.MEGABYTES else []
    too_much += [f"{also_grown:.0f} MB for files"] if also_grown > inputs.MEGABYTES else []
    for line in too_much:
        print(f"TOO MUCH  {line}")
    text = page(options, longest, grown, found, also_grown)
    print(text)
    if harm or too_much:
        raise SystemExit(1)
    if options.page:
        options.page.write_text(text)


def told_progress(what, number):
    """Return a function that prints how far it is, now and then."""
    began = time.monotonic()

    def tell(done):
        if done % max(1, number // STEPS) == 0:
            print(f"{done} of {number} {what}, {time.monotonic() - began:.0f} s", flush=True)

    return tell


def page(options, longest, grown, found, also_grown):
    """The result as a page of the documentation."""
    rows = [f"| answers of sites | {options.number} | – | {longest:.2f} | {coordinator.SECONDS:g} |"]
    for title, one in sorted(found.items()):
        rows.append(f"| {title} | {one.number} | {one.refused} | {one.longest:.2f} | {inputs.SECONDS:g} |")
    return PAGE.format(
        number=options.number,
        seed=options.seed,
        rows="\n".join(rows),
        grown=f"{grown:.0f}",
        files_grown=f"{also_grown:.0f}",
        most=coordinator.MEGABYTES,
        files_most=inputs.MEGABYTES,
    )


PAGE = """\
# Hostile input

Made by `python -m tests.hostile --number {number} --seed {seed} --page docs/hostile.md` in a clone of the repository.
Generated answers of a site and generated files (wrong kinds, shapes and types, NaN, infinities, huge and negative
numbers, deep nesting, cut off and random bytes, archives that are larger inside than they say, members that point
elsewhere, valid but extreme values) were given to the parts of fedcso that read them. The tests try a thousand.

| input | number | refused in words | longest, seconds of processor time | limit |
| --- | ---: | ---: | ---: | ---: |
{rows}

No answer stopped the coordinator or made it leave out an honest site, and no file led to a traceback. What is not
refused was used, or passed over for the checkpoint before it. Nothing was written outside of run folders, and nothing
that was there was changed. All answers together made the process grow by {grown} MB (limit {most}), all files by
{files_grown} MB (limit {files_most}). Runs with valid but very large settings (a billion rounds) were read but not
carried out.
"""


if __name__ == "__main__":
    main()
