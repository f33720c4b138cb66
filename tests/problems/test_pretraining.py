"""An ordinary classifier of all characters, evaluated on few-shot tasks."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from fedcso.algorithms import FedAvg
from fedcso.core.plan import Plan
from fedcso.core.streams import stream
from fedcso.core.tree import map_leaves
from fedcso.engines import run
from fedcso.models.conv4 import Conv4
from fedcso.problems import MAML, PROBLEMS
from fedcso.problems.maml import judge_adapted
from tests.command_line import read_csv, without_drawing
from tests.command_line import run as run_command
from tests.few_characters import DRAWINGS, ON_THE_COMMAND_LINE, OPTIONS, instead_of_glyphs
from tests.helpers import CLEARLY


@pytest.fixture
def characters(monkeypatch):
    return instead_of_glyphs(monkeypatch)


def test_every_class_has_a_label_of_its_own_whoever_holds_it(characters):
    """All drawings with the same label show the same character."""
    task = PROBLEMS["pretraining"](**OPTIONS | {"clients": 3, "ways": 2})
    labels, kinds = [], []
    for data in task.clients:
        for label in data.labels.unique().tolist():
            drawings = (data.inputs[data.labels == label].squeeze(1) * 255).round().to(torch.uint8)
            labels.append(label)
            kinds += [kind for kind, known in enumerate(characters.train) if torch.equal(known, drawings)]
    assert labels == list(range(len(characters.train)))
    assert sorted(kinds) == labels


def test_the_network_tells_all_training_characters_apart(characters):
    task = PROBLEMS["pretraining"](**OPTIONS)
    x = task.problem.init(stream(0, 0, 0))
    assert x["out.weight"].shape == (len(characters.train), OPTIONS["filters"])
    xi = task.problem.sample_outer(task.clients[1], stream(0, 0, 0), (9,))
    logits = task.problem.network.apply(x | {"out.bias": torch.arange(8.0)}, xi.inputs)
    losses = task.problem.outer(map_leaves(lambda leaf: leaf.unsqueeze(0), x | {"out.bias": torch.arange(8.0)}), xi)
    torch.testing.assert_close(losses, F.cross_entropy(logits, xi.labels, reduction="none"))


def test_when_judged_the_last_layer_is_a_fresh_one(characters):
    """The weights of the last layer have no influence, those of the other layers do."""
    task = PROBLEMS["pretraining"](**OPTIONS)
    x = task.problem.init(stream(0, 0, 0))
    metrics = task.judge.measure(x, task.test.whole)
    trained = {name: torch.randn_like(leaf) if name.startswith("out") else leaf for name, leaf in x.items()}
    assert task.judge.measure(trained, task.test.whole) == metrics
    other = x | {"convolutions.0.weight": -x["convolutions.0.weight"]}
    assert abs(task.judge.measure(other, task.test.whole)["loss"] - metrics["loss"]) > CLEARLY


def test_it_is_judged_as_maml_is(characters):
    """Both use the same tasks, and the same adaptation steps from the same last layer."""
    task, meta = PROBLEMS["pretraining"](**OPTIONS), PROBLEMS["maml"](**OPTIONS)
    for one, other in zip(task.test.whole.xi, meta.test.whole.xi, strict=True):
        assert torch.equal(one, other)
    few_shot = MAML(partial(Conv4, OPTIONS["ways"], OPTIONS["filters"]), OPTIONS["ways"], OPTIONS["queries"])
    start = few_shot.init(stream(0, 0, 0))  # whose last layer is zero
    x = start | {"out.weight": torch.ones(8, OPTIONS["filters"]), "out.bias": torch.ones(8)}
    assert task.judge.measure(x, task.test.whole) == judge_adapted(few_shot).measure(start, meta.test.whole)


def test_by_centroids_an_image_belongs_to_the_class_with_the_nearest_mean_of_features(characters):
    task = PROBLEMS["pretraining"](**OPTIONS | {"shots": 2, "centroids": True})
    x = task.problem.init(stream(0, 0, 0))
    ways, queries = OPTIONS["ways"], OPTIONS["queries"]
    right = []
    for support, images in zip(task.test.whole.eta, task.test.whole.xi.images, strict=True):
        everything = torch.cat([support.flatten(0, 1), images])
        hidden = {name: leaf for name, leaf in x.items() if not name.startswith("out")}
        network = Conv4(ways=OPTIONS["filters"], filters=OPTIONS["filters"])
        network.load_state_dict(hidden | {"out.weight": torch.eye(OPTIONS["filters"])}, strict=False)
        found = network(everything).detach()
        means = torch.stack([found[[way, ways + way]].mean(0) for way in range(ways)])
        for place, feature in enumerate(found[2 * ways :]):
            right.append(int((feature - means).square().sum(1).argmin()) == place // queries)
    assert task.judge.measure(x, task.test.whole)["accuracy"] == pytest.approx(sum(right) / len(right))


def test_fedavg_learns_to_tell_the_characters_apart(characters):
    task = PROBLEMS["pretraining"](**OPTIONS)
    plan = Plan(rounds=4, local_steps=4, outer_batch=4 * DRAWINGS, evaluate_every=4)
    losses = []

    def keep(progress):
        (report,) = progress.traces
        everything = [(data.inputs, data.labels) for data in task.clients]
        inputs, labels = (torch.cat(column) for column in zip(*everything, strict=True))
        losses.append(F.cross_entropy(task.problem.network.apply(report.last, inputs), labels).item())

    run(FedAvg(0.5), task, plan, callbacks=[keep], engine="threads")
    assert losses[-1] < losses[0] < torch.tensor(8.0).log()  # from zero, all eight classes are equally likely


def test_it_runs_through_the_command_line(characters, monkeypatch, tmp_path):
    without_drawing(monkeypatch)
    folder = run_command(
        "run", "pretraining", *ON_THE_COMMAND_LINE, "--algorithm", "FedAvg", "--outer_batch", 8, out=tmp_path
    )
    first, last = read_csv(folder / "metrics.csv")
    assert float(last["loss"]) != float(first["loss"])
    assert {"accuracy", "accuracy_interval", "client_accuracy", "client_loss"} <= last.keys()
    assert last["inner_samples"] == "0"
    assert all(0 <= float(row["accuracy"]) <= 1 for row in read_csv(folder / "clients.csv"))
