"""Show what would leave a site."""

import json

from fedcso.datasets.tables.columns import CATEGORIES
from fedcso.datasets.tables.describe import FEWEST, Column, Description, describe_table
from fedcso.federation.sovereignty.withholding import without_small_counts
from fedcso.reports.terminal import show


def check_site(
    data: str, label: str, positive: str, drop: str, columns: str, *, as_json: bool, smallest_count: int
) -> None:
    """Print a summary of what is sent, or the message itself."""
    whole, parts, notes = describe_table(data, label, positive, drop, columns, fewest=smallest_count)
    described = Description.read("", without_small_counts(whole.as_json(), smallest_count))
    if as_json:
        print(json.dumps(described.as_json(), indent=1))
        return
    print(f"{data}: {sum(parts.values())} rows: {parts['train']} for training, ", end="")
    print(f"{parts['validation']} for validation, {parts['test']} for testing. No row leaves this machine.\n")
    print(f"Sent once, when joining: {described.rows} training rows, {described.positives} positive, and about them:")
    if described.pictures:
        print(f"pictures of {'×'.join(map(str, described.pictures))}: only their shape\n")
    else:
        show([_row(name, column) for name, column in described.columns.items()])
        print(f"Numbers of rows below {smallest_count} (smallest_count) are withheld: they count with a larger one.\n")
    print(
        "Sent in every round: the model after training here (and what else the method averages, such as u), the number"
    )
    print("of samples drawn, the mean training loss and the seconds; in some rounds also metrics on the test rows.")
    print("Such updates can reveal something about the rows; the site's policy can clip them and add noise.")
    for note in [*notes, *_warnings(described, max(FEWEST, smallest_count))]:
        print(f"note    {note}")


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
