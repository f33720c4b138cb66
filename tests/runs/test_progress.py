"""What is shown while a run goes on: plain lines now and then, or bars on a terminal."""

import io

import pytest
from rich.console import Console

from fedcso.runs import progress
from fedcso.runs.progress import PLAIN_SECONDS, VISIBLE, Lines, Terminal


class Clock:
    """A time that goes on only when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_every_unit_has_a_line_at_its_end_however_quick_it_was(clock, capsys):
    with Lines() as lines:
        for name in ("A", "B"):
            for done in range(4):
                lines.update(name, done, 3, "loss 0.5")
    assert capsys.readouterr().err.splitlines() == [
        "A: round 3/3  loss 0.5  0 s left",
        "B: round 3/3  loss 0.5  0 s left",
    ]


def test_a_long_unit_has_a_line_every_few_seconds_and_no_more(clock, capsys):
    rounds, seconds = 1000, 0.05
    lines = Lines()
    for done in range(rounds + 1):
        lines.update("A", done, rounds, "")
        clock.now += seconds
    count = len(capsys.readouterr().err.splitlines())
    assert count == pytest.approx(rounds * seconds / PLAIN_SECONDS, abs=2)


def test_a_line_says_how_long_it_will_take(clock, capsys):
    lines = Lines()
    lines.update("A", 0, 10, "")
    clock.now += 4 * PLAIN_SECONDS
    lines.update("A", 4, 10, "")
    assert capsys.readouterr().err == f"A: round 4/10    {6 * PLAIN_SECONDS:.0f} s left\n"


def test_a_resumed_unit_counts_only_what_it_did_itself(clock, capsys):
    lines = Lines()
    lines.update("A", 90, 100, "")
    clock.now += PLAIN_SECONDS
    lines.update("A", 91, 100, "")
    assert f"{9 * PLAIN_SECONDS:.0f} s left" in capsys.readouterr().err


def test_a_unit_first_seen_on_its_way_says_nothing_of_the_time_until_a_round_has_passed(clock, capsys):
    """Who follows a run over real sites hears of it when its first round is done."""
    lines = Lines()
    clock.now += PLAIN_SECONDS
    lines.update("A", 1, 6, "")
    assert capsys.readouterr().err == "A: round 1/6  \n"
    clock.now += PLAIN_SECONDS
    lines.update("A", 2, 6, "")
    assert capsys.readouterr().err == f"A: round 2/6    {4 * PLAIN_SECONDS:.0f} s left\n"


def test_lines_go_to_standard_error(clock, capsys):
    Lines().update("A", 1, 1, "")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


@pytest.fixture
def screen():
    return Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)


def test_a_terminal_has_a_bar_with_rounds_and_note(screen):
    with Terminal(screen) as terminal:
        terminal.update("FCSG-M", 3, 8, "accuracy 0.9")
        terminal.update("FCSG-M", 5, 8, "accuracy 0.8")
    shown = screen.file.getvalue()
    last = shown.rsplit("FCSG-M", 1)[1]
    assert "5/8" in last
    assert "accuracy 0.8" in last
    assert "━" in last


def test_many_units_do_not_push_each_other_off_the_screen(screen):
    units = [f"unit {n}" for n in range(3 * VISIBLE)]
    with Terminal(screen) as terminal:
        for name in units:
            terminal.update(name, 1, 1, "")
        visible = [task.description for task in terminal.bars.tasks if task.visible]
    assert visible == units[-VISIBLE:]


def test_there_are_bars_on_a_terminal_and_lines_elsewhere(monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert isinstance(progress.display(), Lines)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert isinstance(progress.display(), Terminal)
