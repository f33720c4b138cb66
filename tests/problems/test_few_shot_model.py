"""What a few-shot model needs beside its weights survives as a file."""

import pytest

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.datasets.characters import ImageForm
from fedcso.problems.few_shot_model import FILE, FewShotModel
from fedcso.problems.maml import build_network

MODEL = FewShotModel(7, 0.25, 3, ImageForm(32, "colour", True), filters=8, pooling=True, fresh_last_layer=True)


def test_a_model_is_read_as_it_was_written():
    assert FewShotModel.from_json(MODEL.files()[FILE], FILE) == MODEL


def test_the_network_is_for_its_images_and_any_number_of_classes():
    network = build_network(MODEL, 9)()
    assert network.pooling
    assert network.convolutions[0].weight.shape == (8, 3, 3, 3)
    assert network.out.weight.shape == (9, 8)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"form": {"size": 3, "depth": 1}}', '{"form": {}}'])
def test_another_file_is_refused(text):
    with pytest.raises(FedcsoError, match=r"few-shot\.json can't be read .*: export the model again"):
        FewShotModel.from_json(text, FILE)


def test_filters_are_checked():
    with pytest.raises(InvalidValue, match="filters = 0"):
        FewShotModel(5, 0.4, 3, ImageForm(), filters=0)
