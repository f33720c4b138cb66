"""Show what would leave a site if it joined a federation with this table: shapes and counts, never rows.

examples:
  fedcso check-site my.csv --label y
  fedcso check-site my.csv --label outcome --positive died,relapsed --drop ward
  fedcso check-site my.csv --label y --json        the exact message
"""

import json

from fedcso.cli.parser import simple_parser
from fedcso.datasets.tables.columns import CATEGORIES
from fedcso.datasets.tables.describe import FEWEST, Column, Description, describe_table
from fedcso.federation.sovereignty.policy import Policy
from fedcso.federation.sovereignty.withholding import without_small_counts
from fedcso.reports.terminal import show


def main(arguments: list[str]) -> int:
    """Print a summary of what is sent, or the message itself."""
    parser = simple_parser("check-site", str(__doc__))
    parser.add_argument("data", help="the site's table: a .csv, .xlsx, .parquet or .npz file")
    parser.add_argument("--label", default="", help="the column that holds the labels")
    parser.add_argument("--positive", default="", help="the labels that count as positive, separated by commas")
    parser.add_argument("--drop", default="", help="columns to leave out, separated by commas")
    parser.add_argument("--columns", default="", help="the only columns to use, separated by commas")
    parser.add_argument("--json", action="store_true", help="print the exact message that is sent when the site joins")
    parser.add_argument(
        "--smallest_count", type=int, default=Policy.smallest_count, help="as in the site's policy, site.toml"
    )
    options = parser.parse_args(arguments)
    whole, parts, notes = describe_table(options.data, options.label, options.positive, options.drop, options.columns)
    described = Description.read("", without_small_counts(whole.as_json(), options.smallest_count))
    if options.json:
        print(json.dumps(described.as_json(), indent=1))
        return 0
    print(f"{options.data}: {sum(parts.values())} rows: {parts['train']} for training, ", end="")
    print(f"{parts['validation']} for validation, {parts['test']} for testing. No row leaves this machine.\n")
    print(f"Sent once, when joining: {described.rows} training rows, {described.positives} positive, and about them:")
    if described.pictures:
        print(f"pictures of {'×'.join(map(str, described.pictures))}: only their shape\n")
    else:
        show([_row(name, column) for name, column in described.columns.items()])
        print(f"Numbers of rows below {options.smallest_count} (smallest_count) are withheld; they are shown as 0.\n")
    print(
        "Sent in every round: the model after training here (and what else the method averages, such as u), the number"
    )
    print("of samples drawn, the mean training loss and the seconds; in some rounds also metrics on the test rows.")
    print("Such updates can reveal something about the rows; the site's policy can clip them and add noise.")
    for note in [*notes, *_warnings(described, max(FEWEST, options.smallest_count))]:
        print(f"note    {note}")
    return 0


def _row(name: str, column: Column) -> dict[str, str]:
    return {"column": name, "kind": column.kind, "given": str(column.given), "missing": str(column.missing)} | {
        "leaves": ", ".join(_leaving(column)) or "nothing"
    }


def _leaving(column: Column) -> list[str]:
    """Return what is sent about a column besides its kind and counts."""
    return [
        *([f"mean {column.mean:.4g}", f"deviation {column.deviation:.4g}"] if column.deviation or column.mean else []),
        *(f"{value} ({count})" for value, count in column.categories.items()),
        *(f"{name}: {', '.join(said)}" for name, part in column.parts.items() if (said := _leaving(part))),
    ]


def _warnings(described: Description, fewest: int) -> list[str]:
    found = []
    if not described.positives:
        found.append("no training row is positive: for AUPRC this site can evaluate models, but not train them")
    for name, column in described.columns.items():
        if not column.categories and column.kind == CATEGORIES:
            found.append(
                f"{name}: no category occurs at least {fewest} times, so its values are not sent; is it an identifier?"
            )
    return found
