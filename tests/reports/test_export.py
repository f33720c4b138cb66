"""A trained network as ONNX: the same numbers as torch for any number of examples, and how to load it."""

import re
from functools import cache, partial

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import Network
from fedcso.core.streams import stream
from fedcso.datasets import Examples
from fedcso.models.score_nets import build_network
from fedcso.problems.scores import Scores, ranking_judge
from fedcso.reports.export import as_onnx, loading_example
from tests.rare import labelled

PICTURES = torch.randint(256, (5, 1, 28, 28), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
ROWS = labelled(5, 2, dtype=torch.float32).inputs


INPUTS = {"mlp": ROWS, "mnist": PICTURES}


def delivered(name: str, examples: int = 5) -> tuple[Network, Scores, dict]:
    inputs = INPUTS[name][:examples]
    scores = Scores(partial(build_network, name, inputs.shape[1:]))
    x = scores.network.init(stream(3, 0, 0))
    return ranking_judge(scores).network(x, Examples(inputs, torch.zeros(len(inputs)))), scores, x


@cache
def exported(name: str) -> bytes:
    return as_onnx(delivered(name)[0])


def run(onnx: bytes, inputs: torch.Tensor) -> np.ndarray:
    (scores,) = onnxruntime.InferenceSession(onnx).run(None, {"inputs": inputs.numpy()})
    return scores


def same(onnx: bytes, inputs: torch.Tensor, scores: Scores, x: dict) -> bool:
    shown = inputs.float() / 127.5 - 1 if inputs.dtype == torch.uint8 else inputs
    return np.allclose(run(onnx, shown)[:, 0], scores.logits(x, inputs).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", INPUTS)
def test_it_gives_the_same_numbers_for_any_number_of_examples(name):
    _, scores, x = delivered(name)
    other = scores.network.init(stream(4, 0, 0))
    for number in (1, 2, 3, 70):
        some = INPUTS[name][torch.arange(number) % 5]
        assert same(exported(name), some, scores, x)
        assert not same(exported(name), some, scores, other)


def test_one_example_to_show_is_enough_and_the_same_network_gives_the_same_bytes():
    network, _, _ = delivered("mlp", examples=1)
    assert as_onnx(network) == exported("mlp")


class LooksAtValues(nn.Module):
    """Its course depends on the numbers, which no graph can hold."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layer(inputs) if inputs.sum().item() > 0 else -self.layer(inputs)


def test_a_network_that_can_not_be_exported_is_told_in_a_line():
    with pytest.raises(FedcsoError, match=r"^the network can't be exported to ONNX: .+") as caught:
        as_onnx(Network(LooksAtValues(), ROWS))
    assert "\n" not in str(caught.value)


def code_in(text: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return code


def test_the_example_without_a_table_runs_as_it_stands(tmp_path, monkeypatch):
    _, scores, x = delivered("mlp")
    (tmp_path / "FCSG-M(momentum=0.5).onnx").write_bytes(exported("mlp"))
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(code_in(loading_example("FCSG-M(momentum=0.5).onnx", preparation=False)), names)
    expected = scores.logits(x, torch.zeros(2, 3)).detach().numpy()
    np.testing.assert_allclose(names["scores"][:, 0], expected, rtol=1e-4, atol=1e-5)


def test_it_says_which_models_were_exported():
    text = loading_example("A.onnx", False, ["A: seed 2, after round 8 (best validation F1, 0.7)"])
    assert text.endswith("# Which models\n\n- A: seed 2, after round 8 (best validation F1, 0.7)\n")
    assert "Which models" not in loading_example("A.onnx", False)
