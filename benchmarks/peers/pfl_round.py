"""pfl-research, with `FederatedAveraging` on a `SimulatedBackend`."""

import sys
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel

from benchmarks.peers.work import BATCH, CLIENTS, RATE, Clock, pictures
from fedcso.models.small_cnn import SmallCNN


class Network(SmallCNN):
    """The network, with the two methods that pfl requires."""

    def loss(self, inputs: torch.Tensor, labels: torch.Tensor, eval: bool = False) -> torch.Tensor:
        """Return the cross-entropy."""
        return F.cross_entropy(self(inputs), labels.long())  # pfl converts all data to float

    def metrics(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
        """Return the loss as a metric."""
        with torch.no_grad():
            return {"loss": Weighted(float(self.loss(inputs, labels)) * len(labels), len(labels))}


class Ticking(TrainingProcessCallback):
    """A callback that reports the end of each round to the clock."""

    def __init__(self, clock: Clock):
        self.clock = clock

    def after_central_iteration(
        self, aggregate_metrics: Any, model: Any, *, central_iteration: int
    ) -> tuple[bool, Any]:
        """Report the end of a round, and continue."""
        self.clock.tick()
        return False, Metrics()


def main(rounds: int) -> None:
    clock, (inputs, labels) = Clock(), pictures()
    users = {str(n): Dataset(raw_data=[inputs[n].numpy(), labels[n].numpy()]) for n in range(CLIENTS)}
    sampler = get_user_sampler("minimize_reuse", list(users))
    data = FederatedDataset(lambda user: users[user], sampler)
    network = Network()
    central = torch.optim.SGD(network.parameters(), lr=1.0)
    model = PyTorchModel(network, torch.optim.SGD, central)
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=rounds, evaluation_frequency=rounds + 1, train_cohort_size=CLIENTS, val_cohort_size=0
        ),
        SimulatedBackend(training_data=data, val_data=data),
        model,
        NNTrainHyperParams(local_learning_rate=RATE, local_num_epochs=1, local_batch_size=BATCH),
        NNEvalHyperParams(local_batch_size=BATCH),
        [Ticking(clock)],
    )
    assert np.isfinite(float(next(network.parameters()).detach().sum()))
    clock.report()


if __name__ == "__main__":
    main(int(sys.argv[1]))
