"""Names at the right ends of curves, moved apart so that they can be read."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

FONT = 7.0
SPACE = 1.15
"""The height of a line of text, in font sizes."""


def label_curves(figure: Figure, axes: Axes) -> None:
    """Write the name of every curve beside its end; thin lines lead to names that had to move."""
    lines = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    ends = [(float(np.asarray(line.get_xdata())[-1]), float(np.asarray(line.get_ydata())[-1])) for line in lines]
    right = max(place for place, _ in ends)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    names = [
        axes.annotate(
            str(line.get_label()),
            xy=end,
            xytext=(1.03, 0.5),
            textcoords="axes fraction",
            color=line.get_color(),
            fontsize=FONT,
            va="center",
            annotation_clip=False,
        )
        for line, end in zip(lines, ends, strict=True)
    ]
    figure.draw_without_rendering()  # makes room for the names; then the size of the panel is known
    to_share = axes.transData + axes.transAxes.inverted()
    heights = [float(to_share.transform(end)[1]) for end in ends]
    gap = FONT * SPACE / 72 / (axes.get_window_extent().height / figure.dpi)
    for line, end, name, place in zip(lines, ends, names, spread(heights, gap), strict=True):
        name.set_position((1.03, place))
        start = to_share.transform((max(end[0], right), end[1]))
        axes.plot(
            [float(start[0]), 1.02],
            [float(start[1]), place],
            transform=axes.transAxes,
            color=line.get_color(),
            linewidth=0.4,
            clip_on=False,
            label="_leader",
        )


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return places at least a gap apart, in the same order and near the given ones, between 0 and 1 if they fit.

    Names that would overlap form a block around the mean of their places; blocks that meet become one.
    """
    order = sorted(range(len(places)), key=lambda number: places[number])
    blocks: list[list[int]] = []
    for number in order:
        blocks.append([number])
        while len(blocks) > 1 and _start(blocks[-1], places, gap) - gap < _end(blocks[-2], places, gap):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    moved = dict.fromkeys(order, 0.0)
    for block in blocks:
        moved |= {number: _start(block, places, gap) + k * gap for k, number in enumerate(block)}
    return [moved[number] for number in range(len(places))]


def _start(block: Sequence[int], places: Sequence[float], gap: float) -> float:
    length = gap * (len(block) - 1)
    middle = sum(places[number] for number in block) / len(block)
    return min(max(middle - length / 2, 0.0), 1.0 - length)


def _end(block: Sequence[int], places: Sequence[float], gap: float) -> float:
    return _start(block, places, gap) + gap * (len(block) - 1)
