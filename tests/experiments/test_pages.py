"""The pages in `docs/reproduction/` say what the experiments write: settings and sentences are the same."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fedcso.experiments import (
    EXPERIMENTS,
    bias_report,
    communication,
    few_shot_best_report,
    few_shot_report,
    figure1_report,
    leaderboard_report,
    rare_positives,
    rare_report,
    table1,
    tables,
    task_batch,
    tracking,
)
from fedcso.experiments.reproduction import FixedSections

PAGES = Path(__file__).parents[2] / "docs/reproduction"

DESCRIBE: dict[str, Callable[..., FixedSections]] = {
    "bias": bias_report.describe,
    "communication": communication.describe,
    "figure1": figure1_report.describe,
    "few-shot": few_shot_best_report.describe,
    "figure2": lambda config: few_shot_report.describe(config, 6),
    "figure3": lambda config: few_shot_report.describe(config, 6),
    "leaderboard": leaderboard_report.describe,
    "rare": rare_report.describe,
    "table1": table1.describe,
    "table2": lambda config: rare_positives.describe(config, 3),
    "tables": tables.describe,
    "task-batch": lambda config: task_batch.describe(config, 6),
    "tracking": tracking.describe,
}
"""By experiment; the numbers are those of the trials of each method."""

EARLIER = {"figure3"}
"""Pages about an earlier version of the experiment; they say so."""


def sections(name: str) -> dict[str, str]:
    """The sections of a page by heading; the title is without a heading."""
    title, *parts = re.split(r"^## ", (PAGES / f"{name}.md").read_text(), flags=re.MULTILINE)
    found = {"": title.strip().removeprefix("# ")}
    for part in parts:
        heading, _, text = part.partition("\n")
        found[heading] = text.strip()
    return found


def test_every_experiment_has_a_page():
    assert DESCRIBE.keys() == EXPERIMENTS.keys()
    assert {path.stem for path in PAGES.glob("*.md")} == {*EXPERIMENTS, "index"}


@pytest.mark.parametrize("name", sorted(EARLIER))
def test_a_page_about_an_earlier_version_says_which(name):
    assert re.search(r"measured with the settings of commit `[0-9a-f]{7,}`", sections(name)[""])


@pytest.mark.parametrize("name", sorted(DESCRIBE.keys() - EARLIER))
def test_a_page_has_the_sections_that_the_experiment_writes(name):
    experiment = EXPERIMENTS[name]
    settings = experiment.settings(False)
    settings = settings.updated(yaml.safe_load(yaml.safe_dump(settings.flat(), sort_keys=False)))
    fixed, page = DESCRIBE[name](settings), sections(name)
    assert page[""] == fixed.title
    assert page["Paper"] == fixed.paper
    assert page["Implemented"] == fixed.implemented
    assert page["Data"] == fixed.data
    assert page["Hyper-parameters"] == fixed.hyper_parameters
    assert page["Command"] == f"`fedcso reproduce {name}`"
    assert page["Expected"] == fixed.expected
