"""Colours, dashes and markers of curves, for figures and the report page."""

from typing import Any, NamedTuple

COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A8A"),
    *("#B41E87", "#9669FF", "#5AD296", "#FF96FF", "#5A690F", "#FFA5A5", "#4BB400", "#C31E3C"),
    *("#873CC3", "#785A69", "#96D200", "#FF6969", "#878700", "#0F96C3", "#B45AC3", "#D278F0"),
)
"""The first seven are those of Okabe and Ito, which colour-blind readers tell apart; the eighth is grey. Each of the
others is as far as possible from all before it, both for normal vision and for red-green blindness, and stands out from
a white and from a dark background. Dashes and markers tell all of them apart in grey."""

DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (3.7, 1.6),
    (6.4, 1.6, 1, 1.6),
    (1, 1.65),
    (5, 1),
    (3, 1, 1, 1),
    (1, 1),
    (7, 2, 1, 2),
)
"""Lengths of dashes and gaps, in line widths."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Matplotlib's names; the page draws the same shapes."""


class Look(NamedTuple):
    """The colour, dashes and marker of one curve."""

    colour: str
    dashes: tuple[float, ...]
    marker: str

    def in_figure(self) -> dict[str, Any]:
        """Return the look as arguments of Matplotlib's `plot`."""
        return {
            "color": self.colour,
            "linestyle": (0, self.dashes) if self.dashes else "-",
            "marker": self.marker,
            "markersize": 4.5,
            "linewidth": 1.6,
        }


def look(number: int) -> Look:
    """Return the look of the n-th curve, from 0."""
    # Markers are shifted after every cycle, so that the first 64 combinations of dashes and marker differ.
    return Look(
        COLOURS[number % len(COLOURS)],
        DASHES[number % len(DASHES)],
        MARKERS[(number + number // len(DASHES)) % len(MARKERS)],
    )
