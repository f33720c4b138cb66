"""How curves look: many of them can be told apart, on white and on dark pages, in colour and in grey."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import fedcso.reports
from fedcso.reports.looks import COLOURS, DASHES, MARKERS, look

RED_GREEN_BLIND = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
"""What is left of linear red, green and blue, by Machado, Oliveira and Fernandes (2009)."""

CSS = (Path(fedcso.reports.__file__).parent / "templates" / "report.css").read_text()


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Björn Ottosson's Oklab, in which distances are differences as people see them."""
    cones = [[0.4122215, 0.5363325, 0.0514460], [0.2119035, 0.6806995, 0.1073970], [0.0883025, 0.2817188, 0.6299787]]
    axes = [[0.2104543, 0.7936178, -0.0040720], [1.9779985, -2.4285922, 0.4505937], [0.0259040, 0.7827718, -0.8086758]]
    return np.array(axes) @ np.cbrt(np.array(cones) @ np.clip(rgb, 0, None))


def contrast(one: str, other: str) -> float:
    """Of two colours, as the web's guidelines for accessibility define it."""
    dark, bright = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (bright + 0.05) / (dark + 0.05)


def nearest(colours, seen=lambda rgb: rgb) -> float:
    places = [oklab(seen(linear(colour))) for colour in colours]
    return min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(places, 2))


def test_twenty_and_more_methods_have_colours_that_differ_visibly():
    assert len(COLOURS) >= 20
    assert len({look(number).colour for number in range(len(COLOURS))}) == len(COLOURS)
    assert nearest(COLOURS) > 0.1  # 0.02 is about the least difference that anyone sees


@pytest.mark.parametrize("matrix", RED_GREEN_BLIND.values(), ids=RED_GREEN_BLIND)
def test_the_first_seven_differ_for_the_red_green_blind_too(matrix):
    assert nearest(COLOURS[:7], lambda rgb: np.array(matrix) @ rgb) > 0.07


@pytest.mark.parametrize(("panel", "least"), [("#ffffff", 1.7), ("#1c2024", 2.6)], ids=["light", "dark"])
def test_every_colour_stands_out_from_both_backgrounds(panel, least):
    assert panel in re.findall(r"--panel: (#\w+);", CSS)
    drawn = [colour for colour in COLOURS if colour != "#000000"]  # which the page draws in the colour of its text
    assert min(contrast(colour, panel) for colour in drawn) > least


def test_dashes_and_markers_alone_tell_64_curves_apart():
    several = len(DASHES) * len(MARKERS)
    assert len({look(number)[1:] for number in range(several)}) == several == 64
