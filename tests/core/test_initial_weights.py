"""Given weights replace x_0, or the network in it, and what does not fit is named."""

import pytest
import torch
from torch import nn

from fedcso.core.errors import FedcsoError
from fedcso.core.initial_weights import InitialWeights
from fedcso.core.streams import START, stream
from fedcso.core.task import Task
from fedcso.core.tree import leaves
from fedcso.problems import AUPRC, AUROC, CrossEntropy, NestedQuadratic
from fedcso.problems.scores import Scores


def net(inputs=3, hidden=4, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 1)).double()


def task(kind=AUPRC, *options):
    return Task(kind(Scores(net), *options), [])


def start_of(task, seed=0):
    return task.starting_point(stream(seed, START, 0))


def equal(x, y):
    return all(torch.equal(a, b) for a, b in zip(leaves(x), leaves(y), strict=True))


GIVEN = {path: leaf.detach() for path, leaf in net(seed=5).named_parameters()}


def test_a_module_its_weights_and_a_tree_start_in_the_same_way():
    for given in (net(seed=5), GIVEN, net(seed=5).state_dict()):
        assert equal(start_of(task().starting_from(given)), GIVEN)


def test_without_given_weights_the_problem_decides():
    assert equal(start_of(task()), dict(net().named_parameters()))


def test_a_bare_tensor_can_be_given():
    x = torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert equal(start_of(Task(NestedQuadratic(2), []).starting_from(x)), x)


def test_the_network_goes_from_one_problem_to_another_and_back():
    minmax = start_of(task(AUROC, 0.3).starting_from(GIVEN))
    assert equal(minmax["primal"]["w"], GIVEN)
    assert (float(minmax["primal"]["a"]), float(minmax["dual"])) == (0.5, 0.0)  # the problem's own
    back = InitialWeights(
        {f"primal.w.{path}": leaf for path, leaf in GIVEN.items()} | {"dual": torch.ones(())}, "primal.w"
    )
    assert equal(start_of(task(CrossEntropy).starting_from(back)), GIVEN)


def test_a_complete_x0_is_taken_as_it_is():
    x = start_of(task(AUROC, 0.3).starting_from(GIVEN))
    x["dual"] = torch.tensor(0.25, dtype=torch.float64)
    assert equal(start_of(task(AUROC, 0.3).starting_from(x)), x)


@pytest.mark.parametrize(("kind", "options"), [(AUPRC, []), (AUROC, [0.3])])
def test_a_fresh_last_layer_is_the_problems_own(kind, options):
    problem = kind(Scores(lambda: net(seed=int(torch.randint(1000, ())))), *options)
    started = [start_of(Task(problem, []).starting_from(GIVEN, fresh_last_layer=True), seed) for seed in range(2)]
    own = [start_of(Task(problem, []), seed) for seed in range(2)]
    if kind is AUROC:
        started, own = ([x["primal"]["w"] for x in some] for some in (started, own))
    for x, fresh in zip(started, own, strict=True):
        assert equal([x["0.weight"], x["0.bias"]], [GIVEN["0.weight"], GIVEN["0.bias"]])
        assert equal([x["2.weight"], x["2.bias"]], [fresh["2.weight"], fresh["2.bias"]])
    assert not torch.equal(started[0]["2.weight"], started[1]["2.weight"])  # it depends on the seed


def test_a_fresh_last_layer_may_have_another_shape():
    larger = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 7)).double()
    x = start_of(task().starting_from(larger, fresh_last_layer=True))
    assert torch.equal(x["0.weight"], larger[0].weight)


def test_numbers_take_the_type_of_the_model():
    x = start_of(task().starting_from({path: leaf.float() for path, leaf in GIVEN.items()}))
    assert x["0.weight"].dtype == torch.float64


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (net(hidden=5), "the leaf '0.weight' has the shape 5×3, the model's has 4×3"),
        ({path: leaf for path, leaf in GIVEN.items() if path != "2.bias"}, "no leaf '2.bias'"),
        (GIVEN | {"4.weight": torch.ones(1)}, "a leaf '4.weight', which the model does not have"),
        (GIVEN | {"0.bias": torch.full((4,), torch.nan)}, "the leaf '0.bias' is not finite"),
    ],
)
def test_what_does_not_fit_is_named(given, said):
    with pytest.raises(FedcsoError, match=said):
        start_of(task().starting_from(given))


def test_one_layer_is_not_replaced():
    one = Task(AUPRC(Scores(nn.Linear(3, 1))), []).starting_from(nn.Linear(3, 1), fresh_last_layer=True)
    with pytest.raises(FedcsoError, match="several layers"):
        start_of(one)


def test_files_keep_everything():
    before = InitialWeights(GIVEN, "primal.w", fresh_last_layer=True)
    after = InitialWeights.from_bytes(before.to_bytes())
    assert equal(dict(after.leaves), {path: GIVEN[path] for path in after.leaves})
    assert (after.weights_at, after.fresh_last_layer) == ("primal.w", True)
    with pytest.raises(FedcsoError, match="not a safetensors file"):
        InitialWeights.from_bytes(b"nothing of the kind")
