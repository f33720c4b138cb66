"""Networks that give each example one score, and the judge of such scores, for problems with rare positives."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import Judge, Network
from fedcso.core.metric import Metric, Symptom
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples
from fedcso.models.functional import Functional, Model

SATURATION = 15.0
"""The absolute value of a logit beyond which its sigmoid is 0 or 1 to six digits, and flat."""

PREVALENCE = Metric("prevalence", "share of positives", share=True, curve=False)
AVERAGE_PRECISION = Metric("average_precision", higher_is_better=True, share=True, chance=PREVALENCE.name)
AUROC = Metric("auroc", "AUROC", higher_is_better=True, share=True)
SATURATED = Metric(
    "saturated",
    "share of saturated scores",
    share=True,
    curve=False,
    tabulated=False,
    symptom=Symptom(
        above=0.5,
        says="of the scores are so large that their sigmoid is flat, because single gradients were too large: set "
        "--clip (for example 1), a smaller --learning-rate, or --itself 1",
    ),
)


@dataclass(frozen=True)
class Scores:
    """A network with one output, which is high for positive examples."""

    model: Model
    network: Functional = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "network", Functional(self.model))

    def logits(self, x: Tree, inputs: torch.Tensor) -> torch.Tensor:
        """Return one number for each example; raise `FedcsoError` if the network returns anything else."""
        output = self.network.apply(x, to_network_input(inputs))
        if output.shape not in ((len(inputs),), (len(inputs), 1)):
            shape = "×".join(map(str, output.shape))
            raise FedcsoError(f"the network must return ONE number for each of {len(inputs)} examples, not {shape}")
        return output.reshape(len(inputs))


def ranking_judge(scores: Scores, weights: Callable[[Tree], Tree] = lambda x: x, sigmoid: bool = True) -> Judge:
    """Return the judge of a problem that ranks examples by a network; `weights` extracts its weights from x.

    `sigmoid` says whether the loss is one of sigmoids, for which large scores are a bad sign.
    """

    def rank(x: Tree, data: Examples) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the scores and the labels of examples."""
        with torch.no_grad():
            parts = [scores.logits(weights(x), part) for part in torch.split(data.inputs, 1000)]
            return torch.cat(parts), data.labels

    def evaluate(x: Tree, data: Examples) -> dict[str, Any]:
        """Measure average precision and AUROC (nan unless there are positives and negatives) and their references.

        `prevalence` is the average precision of random scores; `saturated` is the share of logits at which a sigmoid
        is flat, so that training on sigmoid scores makes no progress.
        """
        if not len(data.labels):
            return dict.fromkeys([AVERAGE_PRECISION.name, AUROC.name, PREVALENCE.name], torch.nan)
        logits, labels = rank(x, data)
        return measure_ranking(logits, labels) | {SATURATED.name: (logits.abs() > SATURATION).double().mean()}

    def network(x: Tree, data: Examples) -> Network:
        """Return the network with these weights."""
        module = copy.deepcopy(scores.network.module)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(weights(x)[name])
        return Network(module, to_network_input(data.inputs[:2]))

    declared = [AVERAGE_PRECISION, AUROC, PREVALENCE, SATURATED if sigmoid else replace(SATURATED, symptom=None)]
    return Judge(evaluate, declared, select=AVERAGE_PRECISION.name, rank=rank, network=network)


def measure_ranking(scores: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Return average precision and AUROC, as scikit-learn defines them, and the share of positives."""
    from sklearn.metrics import average_precision_score, roc_auc_score  # imported late: slow to load

    truth, values = labels.cpu().numpy(), scores.double().cpu().numpy()
    positives = int(truth.sum())
    ranked = bool(torch.isfinite(scores).all())  # scores that have overflowed have no order
    both = 0 < positives < len(truth)
    return {
        AVERAGE_PRECISION.name: float(average_precision_score(truth, values)) if ranked and positives else math.nan,
        AUROC.name: float(roc_auc_score(truth, values)) if ranked and both else math.nan,
        PREVALENCE.name: positives / len(truth),
    }


def to_network_input(inputs: torch.Tensor) -> torch.Tensor:
    """Scale pictures from bytes to numbers in [−1, 1]; return other inputs unchanged."""
    return inputs.float() / 127.5 - 1 if inputs.dtype == torch.uint8 else inputs
