"""The table of faults in docs/deployment.md, made of what the tests of real federations found out.

    pytest tests/federation/real -m 'federation or not federation' --faults docs/faults.jsonl
    python -m tests.federation.real.faults docs/faults.jsonl docs/deployment.md

Both are done by `make test-federation`; single tests can be repeated with the same option. A test notes a row by
`record_property(*fault(…))`. Rows of tests that have passed are appended to the file that `--faults` names; of several
rows for one fault, the last one counts.
"""

import json
import sys
from pathlib import Path

from tests.command_line import read_csv

NAME = "fault"
BEGIN, END = "<!-- faults: made by tests/federation/real/faults.py -->", "<!-- end of faults -->"
HEAD = ["| fault | what happened | seconds of that round | lost |", "| --- | --- | ---: | --- |"]


def fault(what, happened, lost="nothing", seconds=None):
    """A row, as the arguments of `record_property`; the test must have found out what the row says."""
    return NAME, {"fault": what, "happened": happened, "seconds": seconds, "lost": lost}


def seconds_of(folder, *rounds):
    """How long the slowest answer of each round (from 1) took, or the coordinator waited for it."""
    rows = read_csv(folder.path / "sites.csv")
    longest = (max(float(row["seconds"]) for row in rows if int(row["round"]) == one) for one in rounds)
    return ", then ".join(f"{one:.0f}" for one in longest)


def rounds_of_a_site(number):
    """What is lost if a site misses some rounds."""
    return "that site's round" if number == 1 else f"{number} rounds of that site"


def add(properties, results):
    """Append the rows among a test's properties to the results."""
    with results.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for name, row in properties if name == NAME)


def table(results):
    """The table, in Markdown."""
    rows = {row["fault"]: row for row in map(json.loads, results.read_text().splitlines())}
    lines = [f"| {r['fault']} | {r['happened']} | {r['seconds'] or '–'} | {r['lost']} |" for r in rows.values()]
    return "\n".join([*HEAD, *lines])


def put_into(page, text):
    """The page with the table in its place."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    assert after, f"the page has no lines {BEGIN} and {END}"
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def main(results, page):
    page.write_text(put_into(page.read_text(), table(results)))
    print(page)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
