"""`fedcso.adapt`: a run's chosen model, its own steps and images in its form; every mistake is named."""

import shutil

import pytest
import torch

import fedcso
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.streams import stream
from fedcso.datasets.examples import Examples
from fedcso.datasets.image_folders import read_images
from fedcso.problems.maml import MAML, build_network
from fedcso.problems.transduction import adapt_and_classify
from fedcso.runs.adaptation import find_model
from fedcso.runs.initial_model import read_initial
from tests.command_line import run
from tests.few_characters import ON_THE_COMMAND_LINE as ON_CHARACTERS
from tests.few_characters import instead_of_glyphs
from tests.own_images import ON_THE_COMMAND_LINE, picture, write_classes


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run on own images in colour, with two classes in a task."""
    place = tmp_path_factory.mktemp("adaptation")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedcso.reports.figures.render", lambda figure, kind: b"")
        images = write_classes(place / "images", 10, 4, colour=True)
        return run("run", "maml", "--data", images, *ON_THE_COMMAND_LINE, out=place / "runs")


@pytest.fixture
def new(tmp_path):
    """Folders with support and query images of two new classes; one has a support image more."""
    write_classes(tmp_path / "support", [20, 21], [0, 1], colour=True)
    write_classes(tmp_path / "support", [20], [2], colour=True)
    write_classes(tmp_path / "query", [20, 21], [5, 6, 7], colour=True)
    return tmp_path


def pixels(folder):
    images, _, _ = read_images(sorted(folder.glob("*/*.png")), 16, "colour")
    return images.float() / 255


@pytest.mark.parametrize("together", [False, True])
def test_the_chosen_model_takes_the_steps_of_evaluation(trained, new, together):
    found = fedcso.adapt(trained, new / "support", new / "query", together=together)
    problem = MAML(build_network(find_model(str(trained))[1], 2), 2, inner_rate=0.4, test_steps=3)
    support = Examples(pixels(new / "support"), torch.tensor([0, 0, 0, 1, 1]))
    x = dict(read_initial(str(trained)).leaves)
    assert torch.equal(found.probabilities, adapt_and_classify(problem, x, support, pixels(new / "query"), together))
    assert found.classes == ["class20", "class21"]
    assert found.files == [f"class{n}/{seed}.png" for n in (20, 21) for seed in (5, 6, 7)]
    assert found.labels == ["class20"] * 3 + ["class21"] * 3
    assert found.right == sum(one == other for one, other in zip(found.predicted, found.labels, strict=True))
    assert found.predicted == [found.classes[n] for n in found.probabilities.argmax(1)]
    noted = [note for note in found.notes if "classified together" in note]
    assert len(noted) == together


def test_exported_weights_are_the_same_model_wherever_they_are(trained, new, tmp_path):
    expected = fedcso.adapt(trained, new / "support", new / "query").probabilities
    moved = shutil.copytree(trained / "models", tmp_path / "moved")
    for model in (moved / "FCSG.safetensors", f"{trained}:FCSG"):
        assert torch.equal(fedcso.adapt(model, new / "support", new / "query").probabilities, expected)


def test_steps_and_rate_can_be_chosen(trained, new):
    usual, same, steps, rate = (
        fedcso.adapt(trained, new / "support", new / "query", **options).probabilities
        for options in ({}, {"steps": 3, "rate": 0.4}, {"steps": 1}, {"rate": 0.1})
    )
    assert torch.equal(usual, same)
    assert not torch.equal(usual, steps)
    assert not torch.equal(usual, rate)
    for options, said in (({"steps": 0}, "steps = 0"), ({"rate": -1.0}, "rate = -1.0")):
        with pytest.raises(InvalidValue, match=said):
            fedcso.adapt(trained, new / "support", new / "query", **options)
    with pytest.raises(InvalidValue, match="must be smaller: 3 steps of adaptation diverged"):
        fedcso.adapt(trained, new / "support", new / "query", rate=1e300)


def test_new_images_learn_to_be_told_apart(trained, new):
    """The network is hardly trained; enough steps on the support images make up for it."""
    found = fedcso.adapt(trained, new / "support", new / "query", steps=40)
    assert found.right == 6


def test_grey_images_are_converted_for_a_model_in_colour(trained, new):
    picture(20, 9).save(new / "query" / "class20" / "grey.png")
    found = fedcso.adapt(trained, new / "support", new / "query")
    assert "query: 1 images are converted to colour" in found.notes
    assert "support: 5 images are read in colour, as 16×16 pixels" in found.notes


def test_copies_and_unknown_folders_are_noted(trained, new):
    shutil.copy(new / "support" / "class20" / "0.png", new / "query" / "class20" / "copy.png")
    found = fedcso.adapt(trained, new / "support", new / "query")
    assert "1 query images are copies of support images" in found.notes
    (new / "query" / "class21").rename(new / "query" / "unknown")
    found = fedcso.adapt(trained, new / "support", new / "query")
    assert (found.labels, found.right) == ([], None)
    assert "class" not in found.rows()[0]


def test_dark_and_bright_are_exchanged_for_a_model_of_characters(monkeypatch, tmp_path):
    monkeypatch.setattr("fedcso.reports.figures.render", lambda figure, kind: b"")
    instead_of_glyphs(monkeypatch)
    folder = run("run", "pretraining", *ON_CHARACTERS, "--algorithm", "FedAvg", out=tmp_path / "runs")
    assert find_model(str(folder))[1].form == (28, "grey", True)
    assert find_model(str(folder))[1].fresh_last_layer
    write_classes(tmp_path / "support", 3, [0])
    write_classes(tmp_path / "query", 3, [1, 2])
    found = fedcso.adapt(folder, tmp_path / "support", tmp_path / "query")
    assert "query: dark and bright are exchanged, as in training" in found.notes
    problem = MAML(build_network(find_model(str(folder))[1], 3), 3)
    weights = read_initial(str(folder), fresh_last_layer=True)  # the trained one is for the training classes
    x = weights.put_into(problem.init(stream(0, 0, 0)))
    images, _, _ = read_images(sorted((tmp_path / "support").glob("*/*.png")), 28)
    asked, _, _ = read_images(sorted((tmp_path / "query").glob("*/*.png")), 28)
    support = Examples((255 - images).unsqueeze(1) / 255, torch.arange(3))
    expected = adapt_and_classify(problem, x, support, (255 - asked).unsqueeze(1) / 255)
    torch.testing.assert_close(found.probabilities, expected)


def test_for_another_number_of_classes_the_last_layer_is_a_new_one(trained, new):
    write_classes(new / "support", [22], [0, 1], colour=True)
    found = fedcso.adapt(trained, new / "support", new / "query")
    assert found.probabilities.shape == (6, 3)
    problem = MAML(build_network(find_model(str(trained))[1], 3), 3)
    x = read_initial(str(trained)).leaves | {"out.weight": torch.zeros(3, 4), "out.bias": torch.zeros(3)}
    support = Examples(pixels(new / "support"), torch.tensor([0, 0, 0, 1, 1, 2, 2]))
    assert torch.equal(found.probabilities, adapt_and_classify(problem, x, support, pixels(new / "query")))
    assert any("tasks of 2 classes, not 3" in note and "trained with --ways 3" in note for note in found.notes)


def test_one_class_is_refused(trained, new):
    shutil.rmtree(new / "support" / "class21")
    with pytest.raises(FedcsoError, match="support has one class, 'class20': make a folder for each of two or more"):
        fedcso.adapt(trained, new / "support", new / "query")


def test_a_single_image_is_classified_on_its_own_and_refused_together(trained, new):
    every = fedcso.adapt(trained, new / "support", new / "query")
    shutil.rmtree(new / "query")
    write_classes(new / "query", [20], [5], colour=True)
    assert torch.equal(fedcso.adapt(trained, new / "support", new / "query").probabilities, every.probabilities[:1])
    with pytest.raises(FedcsoError, match="query has 1 images, too few to classify them together"):
        fedcso.adapt(trained, new / "support", new / "query", together=True)


def test_what_is_no_few_shot_model_is_refused(trained, new, tmp_path):
    with pytest.raises(FedcsoError, match=r"there is no model .*nowhere: give the folder of a run of maml"):
        fedcso.adapt(tmp_path / "nowhere", new / "support", new / "query")
    with pytest.raises(FedcsoError, match=r"is not a few-shot model \(.*few-shot\.json is missing\)"):
        fedcso.adapt(tmp_path, new / "support", new / "query")
    with pytest.raises(FedcsoError, match=r"unknown method in .* 'FCSG-M'"):
        fedcso.adapt(f"{trained}:FCSG-M", new / "support", new / "query")
