"""Classes for few-shot learning, divided among clients: characters, or a user's own images."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName, require_count
from fedcso.core.judge import ByClient
from fedcso.core.streams import DATA, stream
from fedcso.datasets import CHARACTERS, load_characters
from fedcso.datasets.characters import SIDE, ClassSource, split_classes, with_rotations
from fedcso.models.conv4 import SMALLEST
from fedcso.problems.few_shot_tasks import Classes, Episodes, require_classes


class FewShot(NamedTuple):
    """Clients' data, and tasks to evaluate on."""

    clients: list[Classes]
    """The training classes of each client."""
    test: ByClient
    validation: Episodes


@dataclass(frozen=True)
class FewShotClasses:
    """Classes divided among clients, and what is known of them."""

    clients: Sequence[torch.Tensor]
    """The training classes of each client."""
    source: ClassSource
    shots: int
    """Support samples of each class in evaluation."""
    tasks: Mapping[str, int]
    """The numbers of tasks to evaluate on: `test`, `validation`, and `client` for those of each client."""
    seed: int
    """Seed of the tasks to evaluate on."""

    @property
    def names(self) -> list[str]:
        """The clients' names; none if they have numbers only."""
        return list(self.source.holders)

    def require_enough(self, ways: int, queries: int) -> None:
        """Raise `FedcsoError` if there are too few classes or images for the tasks."""
        for part in ("validation", "test"):
            images = getattr(self.source.characters, part)
            if len(images) < ways:
                raise FedcsoError(
                    f"{len(images)} classes are for {part}, too few for {ways}-way tasks: add classes, use fewer ways, "
                    "or choose the classes of each part by --class-table"
                )
        for n, images in enumerate(self.clients):
            require_classes(images, ways, f"client {self.names[n]!r}" if self.names else "a client")
        drawings = self.clients[0].shape[1]
        if drawings < queries + self.shots:
            advice = f"set queries to at most {drawings - self.shots}" if drawings > self.shots else "use fewer shots"
            raise FedcsoError(
                f"{self.source.smallest} has {drawings} images, too few for queries = {queries} and shots = "
                f"{self.shots}: {advice}, or leave out classes with few images"
            )

    def draw(
        self,
        episodes: Callable[[Classes, int, int, torch.Generator], Episodes],
        held: Callable[[torch.Tensor, torch.Generator], Classes],
    ) -> FewShot:
        """Return clients' data and tasks to evaluate on.

        `episodes` is (classes, tasks, shots, rng) → tasks, and `held` is (images, rng) → a client's data.
        """
        rng = stream(self.seed, DATA, 2)
        shares = [held(images, rng) for images in self.clients]
        _, validation, test = self.source.characters
        return FewShot(
            shares,
            test=ByClient(
                episodes(test, self.tasks["test"], self.shots, stream(self.seed, DATA, 0)),
                [episodes(share, self.tasks["client"], self.shots, rng) for share in shares],
            ),
            validation=episodes(validation, self.tasks["validation"], self.shots, stream(self.seed, DATA, 1)),
        )


def load_few_shot(
    data: str = "glyphs",
    clients: int = 16,
    shots: int = 1,
    rotations: bool = False,
    test_tasks: int = 600,
    validation_tasks: int = 100,
    client_tasks: int = 10,
    data_seed: int = 0,
    image_size: int = SIDE,
    channels: Literal["auto", "grey", "colour"] = "auto",
    class_table: str = "",
) -> FewShotClasses:
    """Return classes divided among clients.

    Args:
        data: glyphs (embedded), omniglot (see: fedcso data get omniglot), or a folder of images with one subfolder for
            each class
        clients: N, the number of clients among which the training classes are divided
        shots: support samples of each class in evaluation; in training they are inner_batch
        rotations: add classes rotated by 90, 180 and 270 degrees as further training classes
        test_tasks: number of test tasks, of unseen classes
        validation_tasks: number of validation tasks, of other unseen classes, by which settings are chosen
        client_tasks: number of tasks of each client's training classes on which it evaluates the model
        data_seed: seed of the division of classes among clients, and of the tasks to evaluate on
        image_size: of your own images, the height and width to which they are brought
        channels: of your own images, grey, colour, or auto to read them as they are
        class_table: of your own images, a CSV file with the columns class, client and part (train, validation, test);
            client decides instead of clients, part instead of data_seed
    """
    tasks = {"test": test_tasks, "validation": validation_tasks, "client": client_tasks}
    require_count("shots", shots)
    for part, count in tasks.items():
        require_count(f"{part}_tasks", count)
    require_count("image_size", image_size, least=SMALLEST)
    if data in CHARACTERS:
        for name, value, usual in (
            ("image_size", image_size, SIDE),
            ("channels", channels, "auto"),
            ("class_table", class_table, ""),
        ):
            if value != usual:
                raise InvalidValue(name, value, f"left out for {data}: it is for your own images")
        source = ClassSource(load_characters(data))
    elif data and os.path.isdir(os.path.expanduser(data)):
        from fedcso.datasets.own_classes import load_own_classes  # imported here because it loads pandas

        folder, table = (os.path.expanduser(path) for path in (data, class_table))
        source = load_own_classes(folder, image_size, channels, table, data_seed)
    else:
        raise UnknownName("data", data, [*CHARACTERS, "FOLDER"])
    rotated = with_rotations if rotations else torch.Tensor.contiguous
    train = source.characters.train
    shares = [rotated(train[which]) for which in source.holders.values()]
    return FewShotClasses(shares or split_classes(rotated(train), clients, data_seed), source, shots, tasks, data_seed)
