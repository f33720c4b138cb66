"""What every reproduction writes: figures, a table, the checked statements, a page and a report.

The page, `reproduction.md`, has the same headings for every figure and table of the paper; the pages in
`docs/reproduction/` are copies.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from fedcso.reports import figures, outputs, page, tables
from fedcso.reports.terminal import show
from fedcso.runs.folder import RunFolder


class Statement(NamedTuple):
    """A statement of the paper, whether it holds here, and what was measured."""

    paper: str
    holds: bool
    measured: str

    def __str__(self) -> str:
        return f"{'HOLDS' if self.holds else 'DOES NOT HOLD'}: “{self.paper}” Measured: {self.measured}"


class Picture(NamedTuple):
    """A figure with the name of its files and its caption."""

    name: str
    figure: Figure
    caption: str


class FixedSections(NamedTuple):
    """The title of the page, and its sections that do not depend on what is measured."""

    title: str
    paper: str
    implemented: str
    data: str
    hyper_parameters: str
    expected: str


def conclude(
    folder: RunFolder,
    fixed: FixedSections,
    pictures: Sequence[Picture],
    table: Sequence[dict[str, Any]],
    statements: Sequence[Statement],
    seconds: float,
) -> None:
    """Write all files, and print the table and the statements."""
    config, environment = folder.config(), folder.environment()
    outputs.write_table(folder, table)
    images = []
    for picture in pictures:
        images.append((picture.caption, figures.render(picture.figure, "png")))
        folder.write(f"{picture.name}.png", images[-1][1])
        folder.write(f"{picture.name}.pdf", figures.render(picture.figure, "pdf"))
    quick = ["This is the quick version, which is too short to judge the paper."] if config["quick"] else []
    findings = quick + [str(statement) for statement in statements]
    folder.write("report.html", page.page(fixed.title, images, table, config, environment, findings))

    machine, versions = environment["machine"], environment["versions"]
    quickly = " --quick" if config["quick"] else ""
    only = "".join(f" {name}" for name in ["--data", *config["only"]]) if config.get("only") else ""
    added = "".join(f" {name}" for name in ["--algorithm", *config["added"]]) if config.get("added") else ""
    command = f"fedcso reproduce {config['experiment']}{quickly}{only}{added}"
    sections = {
        "Paper": fixed.paper,
        "Implemented": fixed.implemented,
        "Data": fixed.data,
        "Hardware": f"{machine['cores']} cores ({machine['processor']}), torch {versions['torch']}; "
        f"{seconds:.0f} seconds of computation.",
        "Hyper-parameters": fixed.hyper_parameters,
        "Command": f"`{command}`",
        "Expected": fixed.expected,
        "Measured": "\n".join(f"- {finding}" for finding in findings)
        + "\n\n"
        + "\n\n".join(f"![{picture.caption}]({picture.name}.png)\n*{picture.caption}*" for picture in pictures)
        + "\n\n"
        + tables.as_markdown([{k: v for k, v in row.items() if k != "seconds"} for row in table]),
    }
    text = "\n".join(f"## {heading}\n\n{body}\n" for heading, body in sections.items())
    folder.write("reproduction.md", f"# {fixed.title}\n\n{text}")

    folder.mark("done")
    show(table, title=fixed.title)
    for finding in findings:
        print(f"- {finding}")
    print(f"figures  {folder.path / pictures[0].name}.png …\nreport   {folder.path / 'report.html'}")
