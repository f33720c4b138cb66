"""What would leave a site with this table if it joined a federation: shapes and counts, never rows.

examples:
  fedcso check-site my.csv --label y
  fedcso check-site my.csv --label outcome --positive died,relapsed
  fedcso check-site my.csv --label y --json        word for word what is sent
"""

import json

from fedcso.cli.parser import simple_parser
from fedcso.datasets.tables.agree import FEWEST, Description, as_json, describe_table
from fedcso.datasets.tables.columns import NUMBERS
from fedcso.reports.terminal import show

HELP = "what would leave a site that joins a federation"


def main(arguments: list[str]) -> int:
    """Say it."""
    parser = simple_parser("check-site", str(__doc__))
    parser.add_argument("data", help="the site's own .csv, .csv.gz, .parquet or .npz file")
    parser.add_argument("--label", default="", help="the column that says which rows are positive")
    parser.add_argument("--positive", default="", help="the labels that count as positive, separated by commas")
    parser.add_argument("--json", action="store_true", help="word for word what is sent when the site joins")
    options = parser.parse_args(arguments)
    described, parts = describe_table(options.data, options.label, options.positive)
    if options.json:
        print(json.dumps(as_json(described), indent=1))
        return 0
    print(f"{options.data}: {sum(parts.values())} rows, of which {parts['train']} train, ", end="")
    print(f"{parts['validation']} validate and {parts['test']} test; no row leaves this machine.\n")
    print(f"Once, when joining: {described.rows} training rows, {described.positives} of them positive, and of these:")
    show([_row(name, described) for name in described.columns])
    print("In every round: the model's parameters after training here (and what else the method averages, such as u),")
    print("how many samples were drawn, the mean training loss, seconds; now and then metrics on the test rows.")
    print("Such updates can tell something about the rows: docs/deployment.md says what helps (noise, clipping).")
    for warning in _warnings(described):
        print(f"note    {warning}")
    return 0


def _row(name: str, described: Description) -> dict[str, str]:
    column = described.columns[name]
    if column.kind == NUMBERS:
        leaves = f"mean {column.mean:.4g}, deviation {column.deviation:.4g}" if column.given else "nothing"
    else:
        leaves = ", ".join(f"{value} ({count})" for value, count in column.categories.items()) or "nothing"
    return {"column": name, "kind": column.kind, "given": str(column.given), "missing": str(column.missing)} | {
        "leaves": leaves
    }


def _warnings(described: Description) -> list[str]:
    found = []
    if not described.positives:
        found.append("there is no positive training row: for AUPRC this site can only measure, not train")
    for name, column in described.columns.items():
        if not column.categories and column.kind != NUMBERS:
            found.append(f"{name}: no category occurs {FEWEST} times; an identifier? Its values stay here")
    return found
