"""fluke, with its `FedAVG`."""

import sys

import torch

from benchmarks.peers.work import BATCH, CLIENTS, RATE, Clock, pictures
from fedcso.models.small_cnn import SmallCNN

TORCHVISION = torch.library.Library("torchvision", "DEF")


class Ticking:
    """A callback that reports the end of each round to the clock."""

    def __init__(self, clock: Clock):
        self.clock = clock

    def end_round(self, round: int) -> None:
        """Report the end of a round."""
        self.clock.tick()


def declare_torchvision() -> None:
    """Let torchvision be imported without its compiled part.

    fluke imports torchvision, which has no build for every CPU-only torch; the compiled part is not used here.
    """
    for name in ("nms", "qnms"):
        TORCHVISION.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def main(rounds: int) -> None:
    declare_torchvision()
    from fluke import DDict, FlukeENV
    from fluke.algorithms.fedavg import FedAVG
    from fluke.data import DataContainer, DataSplitter
    from fluke.evaluation import ClassificationEval

    clock, (inputs, labels) = Clock(), pictures()
    x, y = inputs.flatten(0, 1), labels.flatten()
    environment = FlukeENV()
    environment.set_seed(0)
    environment.set_device("cpu")
    environment.set_evaluator(
        ClassificationEval(eval_every=1_000_000, n_classes=10)
    )  # no evaluation, as for the other frameworks
    environment.set_eval_cfg(server=False, locals=False, pre_fit=False, post_fit=False, task="classification")
    splitter = DataSplitter(DataContainer(x, y, x[:32], y[:32], 10), distribution="iid", client_split=0.0)
    settings = DDict(
        client=DDict(
            batch_size=BATCH,
            local_epochs=1,
            loss="CrossEntropyLoss",
            optimizer=DDict(name="SGD", lr=RATE),
            scheduler=DDict(name="StepLR", gamma=1, step_size=1),
        ),
        server=DDict(weighted=True),
        model=SmallCNN(),
    )
    method = FedAVG(CLIENTS, splitter, settings)
    method.attach(Ticking(clock))
    method.run(rounds, 1.0)
    clock.report()


if __name__ == "__main__":
    main(int(sys.argv[1]))
