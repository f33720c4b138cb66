"""Progress display: bars on a terminal and in a notebook, plain lines elsewhere."""

import sys
import time
from html import escape
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

PLAIN_SECONDS = 3.0
NOTEBOOK_SECONDS = 0.2
VISIBLE = 6


class Display(Protocol):
    """A display of the progress of units of work."""

    def update(self, name: str, done: int, total: int, note: str) -> None:
        """Show that `done` of `total` rounds of the unit `name` are complete, and a note."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Terminal:
    """One bar per unit of work, with rounds, the current metric, bytes and the time left."""

    def __init__(self, console: Console):
        self.bars = Bars(
            TextColumn("{task.description:<28}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self.ids: dict[str, TaskID] = {}

    def update(self, name: str, done: int, total: int, note: str) -> None:
        """Update the unit's bar."""
        if name not in self.ids:
            for old in list(self.ids.values())[: 1 - VISIBLE]:
                self.bars.update(old, visible=False)  # keep the list short enough for the screen
            self.ids[name] = self.bars.add_task(name, total=total, note=note)
        self.bars.update(self.ids[name], completed=done, note=note)

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()


class Notebook:
    """One bar per unit of work below a cell of a notebook, redrawn a few times a second.

    It needs nothing but IPython, unlike bars that are widgets.
    """

    def __init__(self) -> None:
        from IPython.display import HTML, display  # which a notebook has

        self.as_html: Any = HTML
        self.bars: dict[str, str] = {}
        self.last = 0.0
        self.handle: Any = display(HTML(""), display_id=True)

    def update(self, name: str, done: int, total: int, note: str) -> None:
        """Draw the unit's bar, if it is time to draw."""
        bar = f'<progress value="{done}" max="{total}"></progress> {done}/{total} {escape(note)}'
        self.bars[name] = f"<div><code>{escape(name)}</code> {bar}</div>"
        if done >= total or time.monotonic() - self.last >= NOTEBOOK_SECONDS:
            self._draw()

    def _draw(self) -> None:
        self.last = time.monotonic()
        self.handle.update(self.as_html("".join(list(self.bars.values())[-VISIBLE:])))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._draw()


class Lines:
    """A plain line every few seconds, and one at the end of every unit of work."""

    def __init__(self) -> None:
        self.last = time.monotonic()
        self.started: dict[str, tuple[float, int]] = {}
        """For each unit, when it was first shown and how many rounds were complete then."""

    def update(self, name: str, done: int, total: int, note: str) -> None:
        """Print a line if one is due."""
        now = time.monotonic()
        began, first = self.started.setdefault(name, (now, done))
        if now - self.last < PLAIN_SECONDS and done < total:
            return
        self.last = now
        left = _left(now - began, done - first, total - done)
        print(f"{name}: round {done}/{total}  {note}{left}", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


def _left(seconds: float, rounds: int, to_go: int) -> str:
    """Return the estimated time left, or nothing before the first completed round."""
    return "" if to_go and not rounds else f"  {seconds / max(rounds, 1) * to_go:.0f} s left"


def display() -> Display:
    """Return a display of bars on a terminal or in a notebook, else of plain lines."""
    console = Console(stderr=True)
    if console.is_jupyter:
        return Notebook()
    return Terminal(console) if console.is_terminal else Lines()
