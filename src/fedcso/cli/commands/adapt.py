"""Adapt a few-shot model to new classes from a handful of images each, and classify other images.

MODEL is the folder of a run of maml or pretraining (FOLDER:METHOD if it has several methods), or a file in its folder
`models`. SUPPORT has one subfolder for each new class, with some images; QUERY has images to classify, also in
subfolders: if these have the names of classes, accuracy is printed. Images are brought to the size and channels of
the training images, and adaptation takes the steps by which the run evaluated the model. Each query image is
classified on its own; with --together all are one batch, as in the run's evaluation: that is a little better for many
images of all classes in equal numbers, and far worse for others.

examples:
  fedcso adapt runs/2026-01-31_120000_maml_1a2b3c support query
  fedcso adapt runs/2026-01-31_120000_maml_1a2b3c/models/FCSG-M.safetensors support query --out leaves.csv
  fedcso adapt runs/2026-01-31_120000_maml_1a2b3c support query --together --steps 5
"""

from pathlib import Path
from typing import TYPE_CHECKING

from fedcso.core import atomic
from fedcso.core.errors import InvalidValue
from fedcso.runs.parser import simple_parser

if TYPE_CHECKING:
    from fedcso.runs.adaptation import Predictions

SHOWN = 20
"""The largest number of images in the printed table."""


def main(arguments: list[str]) -> int:
    """Write predictions, and print the first of them."""
    parser = simple_parser("adapt", str(__doc__))
    parser.add_argument("model", help="the folder of a run, or a file of exported weights")
    parser.add_argument("support", help="the folder with a subfolder of images for each class")
    parser.add_argument("query", help="the folder with the images to classify")
    parser.add_argument("--steps", type=int, help="adaptation steps; by default those of the run's evaluation")
    parser.add_argument("--rate", type=float, help="step size of the adaptation; by default inner_rate of the run")
    parser.add_argument("--together", action="store_true", help="classify all query images in one batch")
    parser.add_argument("--out", default="predictions.csv", metavar="FILE", help="the CSV file to write")
    options = parser.parse_args(arguments)
    if not Path(options.out).parent.is_dir():
        raise InvalidValue("out", options.out, "a file in a folder that exists")
    from fedcso.reports.tables import as_csv
    from fedcso.runs.adaptation import adapt

    found = adapt(
        options.model,
        options.support,
        options.query,
        steps=options.steps,
        rate=options.rate,
        together=options.together,
    )
    for note in found.notes:
        print(f"note    {note}")
    atomic.write(Path(options.out), as_csv(found.rows()))
    print(_table(found))
    if found.right is not None:
        print(f"accuracy {found.right / len(found.files):.3f} ({found.right} of {len(found.files)} images)")
    print(f"written {options.out}")
    return 0


def _table(found: "Predictions") -> str:
    """Return the first predictions as lines."""
    width = max(map(len, found.files[:SHOWN]))
    probabilities = found.probabilities.max(1).values.tolist()
    rows = list(zip(found.files, probabilities, found.predicted, strict=True))
    lines = [f"{file:{width}}  {probability:.3f}  {name}" for file, probability, name in rows[:SHOWN]]
    more = [f"… and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
    return "\n".join(lines + more)
