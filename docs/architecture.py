"""The drawing of the house, made from the package's imports:  python -m docs.architecture"""

import textwrap
from html import escape
from pathlib import Path

from docs.rooms import FLOORS, imported_rooms, summary

DRAWING = Path(__file__).parent / "architecture.svg"

WIDTH, GAP, PADDING, LINE = 740, 12, 12, 17
"""In pixels: of the drawing, between rooms, inside a room, of a line of text."""


def draw() -> str:
    """Return the house as SVG: a row for each floor, and in each room what it is for and what it imports."""
    imported, parts, top = imported_rooms(), [], GAP
    for floor in reversed(FLOORS):
        width = (WIDTH - GAP * (len(floor) + 1)) / len(floor)
        texts = [_lines(name, imported[name], int((width - 2 * PADDING) / 6.3)) for name in floor]
        height = max(map(len, texts)) * LINE + 2 * PADDING
        for place, lines in enumerate(texts):
            parts.append(_room(lines, GAP + place * (width + GAP), top, width, height))
        top += height + GAP
    style = (
        "text { font: 12px system-ui, sans-serif; fill: #1c2024; } .name { font-weight: 600; font-size: 14px; } "
        ".imports { fill: #0072b2; } rect { fill: #ffffff; stroke: #b9c0c7; }"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}">'
    ground = f'<rect width="{WIDTH}" height="{top}" style="fill: #f1f3f5; stroke: none"/>'
    return "\n".join([head, f"<style>{style}</style>", ground, *parts, "</svg>", ""])


def _lines(name: str, imports: list[str], characters: int) -> list[tuple[str, str]]:
    """The lines of text in a room, each with its style."""
    full = "fedcso" if name == "__init__" else f"fedcso.{name}"
    below = f"imports {', '.join(imports)}" if imports else "imports no other room"
    wrapped = {"": summary(full).replace("`", ""), "imports": below}
    body = [(kind, line) for kind, text in wrapped.items() for line in textwrap.wrap(text, characters)]
    return [("name", full), *body]


def _room(lines: list[tuple[str, str]], left: float, top: float, width: float, height: float) -> str:
    box = f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="6"/>'
    texts = [
        f'<text class="{kind}" x="{left + PADDING:g}" y="{top + PADDING + LINE * number - 4:g}">{escape(line)}</text>'
        for number, (kind, line) in enumerate(lines, 1)
    ]
    return "\n".join([box, *texts])


if __name__ == "__main__":
    DRAWING.write_text(draw())
