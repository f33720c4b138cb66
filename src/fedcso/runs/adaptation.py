"""`fedcso.adapt`: adapt a few-shot model to new classes from a handful of images each, and classify other images.

The model takes the steps by which its run evaluated it, on images in the form of its training images. Batch norm makes
a prediction depend on the images that are processed with it, see `fedcso.problems.transduction`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fedcso.core.errors import FedcsoError, InvalidValue, require_count, require_positive
from fedcso.core.initial_weights import InitialWeights
from fedcso.core.streams import DATA, stream
from fedcso.datasets.examples import Examples
from fedcso.datasets.image_folders import images_by_class, images_to_classify, read_images
from fedcso.problems.few_shot_model import FILE, FewShotModel
from fedcso.problems.maml import MAML, build_network, scale_pixels
from fedcso.problems.transduction import MOST, adapt_and_classify
from fedcso.runs.initial_model import read_initial


class Predictions(NamedTuple):
    """The probabilities of the new classes for each query image."""

    files: list[str]
    """The names of the images in the folder of queries."""
    classes: list[str]
    probabilities: torch.Tensor
    """(images, classes)"""
    labels: list[str]
    """The class of each image, if the subfolders of the queries have names of classes; otherwise empty."""
    notes: list[str]

    @property
    def predicted(self) -> list[str]:
        """The most probable class of each image."""
        return [self.classes[n] for n in self.probabilities.argmax(1).tolist()]

    @property
    def right(self) -> int | None:
        """The number of images whose class is predicted; None if their classes are not known."""
        if not self.labels:
            return None
        return sum(one == other for one, other in zip(self.predicted, self.labels, strict=True))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each image, with a column for the probability of each class."""
        rows = []
        for n, (file, predicted) in enumerate(zip(self.files, self.predicted, strict=True)):
            known = {"class": self.labels[n]} if self.labels else {}
            values = zip(self.classes, self.probabilities[n].tolist(), strict=True)
            rows.append(
                {"file": file, **known, "predicted": predicted, **{f"probability_{name}": p for name, p in values}}
            )
        return rows


def adapt(
    model: str | Path,
    support: str | Path,
    query: str | Path,
    *,
    steps: int | None = None,
    rate: float | None = None,
    together: bool = False,
) -> Predictions:
    """Adapt a few-shot model to the classes of a folder, and classify the images of another one.

    Args:
        model: the folder of a run of maml or pretraining (its chosen model, or FOLDER:METHOD), or the weights that it
            has exported, models/METHOD.safetensors
        support: a folder with one subfolder for each class, with a few images each
        query: a folder of images, also in subfolders; if these have names of classes, right predictions are counted
        steps: number of adaptation steps; by default that of the run's evaluation
        rate: λ, the step size of the adaptation; by default that of the run
        together: classify all query images in one batch, as in the run's evaluation, so that each prediction depends on
            the other images; by default it does not
    """
    weights, trained = find_model(str(model))
    rate = trained.inner_rate if rate is None else rate
    steps = trained.test_steps if steps is None else steps
    require_positive("rate", rate)
    require_count("steps", steps)
    classes, notes = images_by_class(Path(support))
    ways = len(classes)
    if ways < 2:
        raise FedcsoError(f"{support} has one class, {next(iter(classes))!r}: make a folder for each of two or more")
    asked = images_to_classify(Path(query), list(classes))
    if together and len(asked.files) < ways:
        raise FedcsoError(
            f"{query} has {len(asked.files)} images, too few to classify them together: batch norm compares them with "
            f"each other, and needs images of all {ways} classes. Add some, or leave out --together"
        )
    shown, about_support = _read([image for some in classes.values() for image in some], trained, "support")
    labels = torch.arange(ways).repeat_interleave(torch.tensor([len(some) for some in classes.values()]))
    queries, about_queries = _read(asked.files, trained, "query")
    problem = MAML(build_network(trained, ways), ways, inner_rate=rate, test_steps=steps)
    fresh = trained.fresh_last_layer or trained.ways != ways
    x = InitialWeights.of(weights, fresh).put_into(problem.init(stream(0, DATA, 0)))
    probabilities = adapt_and_classify(problem, x, Examples(shown, labels), queries, together)
    if not probabilities.isfinite().all():
        raise InvalidValue("rate", rate, f"smaller: {steps} steps of adaptation diverged")
    return Predictions(
        [str(file.relative_to(query)) for file in asked.files],
        list(classes),
        probabilities,
        asked.labels,
        [
            *(notes + asked.notes + about_support + about_queries),
            *_on_ways(trained.ways, ways),
            *(_on_batches(len(queries)) if together else []),
            *_on_copies(shown, queries),
        ],
    )


def find_model(name: str) -> tuple[InitialWeights, FewShotModel]:
    """Return the weights of a few-shot model, and what it needs beside them."""
    place = Path(name)
    folder = place if place.exists() else Path(name.rpartition(":")[0] or name)
    if not folder.exists():
        raise FedcsoError(f"there is no model {name}: give the folder of a run of maml, or a file in its folder models")
    about = folder.parent / FILE if folder.is_file() else folder / "models" / FILE
    if not about.is_file():
        raise FedcsoError(
            f"{name} is not a few-shot model ({about} is missing): give the folder of a finished run of maml or "
            "pretraining; a run by an earlier version must be repeated"
        )
    return read_initial(name), FewShotModel.from_json(about.read_text(), str(about))


def _read(files: Sequence[Path], trained: FewShotModel, what: str) -> tuple[torch.Tensor, list[str]]:
    """Return images as in training, and notes."""
    form = trained.form
    pixels, _, notes = read_images(files, form.size, form.channels, form.inverted)
    notes += ["dark and bright are exchanged, as in training"] if form.inverted else []
    return scale_pixels(pixels if form.depth > 1 else pixels.unsqueeze(1)), [f"{what}: {note}" for note in notes]


def _on_ways(trained: int, ways: int) -> list[str]:
    """Return a note if the model was made for another number of classes."""
    if ways == trained:
        return []
    return [
        f"the model was trained and evaluated on tasks of {trained} classes, not {ways}: its last layer is replaced by "
        f"zeros, from which it needs more steps (--steps 10); a model for so many is trained with --ways {ways}"
    ]


def _on_batches(number: int) -> list[str]:
    """Return notes on images that are classified together."""
    many = [f"they are divided at random into batches of at most {MOST}"] if number > MOST else []
    return [
        "the query images are classified together: this is for images of all classes in about equal numbers, and wrong "
        "for others",
        *many,
    ]


def _on_copies(shown: torch.Tensor, queries: torch.Tensor) -> list[str]:
    """Return a note if query images are among the support images, which makes them too easy."""
    known = {image.numpy().tobytes() for image in shown}
    copies = sum(image.numpy().tobytes() in known for image in queries)
    return [f"{copies} query images are copies of support images"] if copies else []
