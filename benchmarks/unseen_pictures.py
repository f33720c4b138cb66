"""Fit pictures for which nothing was tuned: is a search of few minutes worth anything?

    python -m benchmarks.unseen_pictures [--minutes 5 20]

Omniglot's training characters (28×28 pixels), of which the first 2 % are positive; five sites with four of the twenty
drawers each. They are saved as an NPZ file, and then fitted as with `fedcso fit pictures.npz --label positive --site
site`. Needs Omniglot (`fedcso data fetch omniglot`).
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.fits import measure_fit, print_fit
from benchmarks.results import save
from benchmarks.timing import describe_machine
from fedcso.datasets.omniglot import omniglot
from fedcso.fitting.config import FitConfig

POSITIVE, SITES = 0.02, 5


def write_pictures(characters: np.ndarray, file: Path) -> None:
    """Save drawings (characters, drawers, height, width) with their labels and sites."""
    classes, drawers = characters.shape[:2]
    character, drawer = np.divmod(np.arange(classes * drawers), drawers)
    np.savez(
        file,
        pictures=characters.reshape(-1, 1, *characters.shape[2:]),
        positive=(character < round(POSITIVE * classes)).astype(np.int64),
        site=drawer * SITES // drawers,
    )


def main() -> None:
    """Fit the pictures for each number of minutes."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 20.0])
    options = parser.parse_args()
    describe_machine()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pictures.npz"
        write_pictures(omniglot().train.numpy(), file)
        fits = [
            measure_fit(FitConfig(str(file), "positive", "site", minutes=minutes, out=folder))
            for minutes in options.minutes
        ]
    for result in fits:
        print_fit(result)
    save("unseen_pictures", fits=fits)


if __name__ == "__main__":
    main()
