"""Data with rare positives are partitioned among sites correctly; sites that can't train do not."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from fedcso import datasets
from fedcso.algorithms import FCSG, FedAvg
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.plan import Plan
from fedcso.core.streams import SERVER, stream
from fedcso.core.tree import is_finite
from fedcso.datasets import Examples, Images
from fedcso.datasets.breast_cancer import breast_cancer
from fedcso.datasets.digits import digits
from fedcso.datasets.partition import train_validation_test
from fedcso.datasets.tables.sites import Sites, load_sites
from fedcso.engines.job import Job
from fedcso.problems.auprc import auprc
from fedcso.problems.auroc import auroc
from fedcso.problems.cross_entropy import cross_entropy
from fedcso.reports.tables import client_rows
from tests.helpers import assert_close, run_on
from tests.rare import auprc_case, labelled

LABELS = {"digits": digits().labels, "breast_cancer": breast_cancer().labels}
POSITIVE = {"digits": (5, 6, 7, 8, 9), "breast_cancer": (1,)}
PARTS = ("train", "validation", "test")


@pytest.fixture
def numbered(monkeypatch):
    """Replace the inputs of the built-in data by their indices, as two bytes, because bytes are not scaled."""
    for name, labels in LABELS.items():
        numbers = torch.arange(len(labels))
        examples = Examples(torch.stack([numbers // 256, numbers % 256], 1).to(torch.uint8), labels)
        monkeypatch.setitem(datasets.DATASETS, name, lambda examples=examples: examples)


def numbers(examples: Examples) -> list[int]:
    return (256 * examples.inputs[:][:, 0].long() + examples.inputs[:][:, 1]).tolist()


def all_numbers(sites: Sites, part: str) -> list[int]:
    return [number for examples in getattr(sites, part) for number in numbers(examples)]


def held(sites: Sites) -> list[list[int]]:
    """Return the numbers of all examples of each site."""
    return [[n for part in parts for n in numbers(part)] for parts in zip(*sites[1:4], strict=True)]


OPTIONS = {
    "as they are": {"removed": 0.0},
    "alike": {},
    "unlike": {"alpha": 0.2},
    "very unlike": {"alpha": 0.01, "clients": 5},
    "few classes": {"classes": 1, "clients": 12},
    "another seed": {"data_seed": 7, "removed": 0.5},
}
CASES = list(itertools.product(LABELS, OPTIONS))


@pytest.mark.parametrize(("data", "how"), CASES)
@pytest.mark.usefixtures("numbered")
def test_every_example_is_at_one_site_except_for_removed_positives(data, how):
    options, labels = OPTIONS[how], LABELS[data]
    positive = torch.isin(labels, torch.tensor(POSITIVE[data]))
    sites = load_sites(data, **options)
    clients = options.get("clients", 16)
    assert sites.names == [str(n) for n in range(clients)]
    assert [len(getattr(sites, part)) for part in PARTS] == [clients] * 3
    for part in PARTS:
        for examples in getattr(sites, part):
            assert examples.labels.tolist() == positive[numbers(examples)].long().tolist()
    there = [number for part in PARTS for number in all_numbers(sites, part)]
    assert len(set(there)) == len(there)
    gone = set(range(len(labels))) - set(there)
    assert all(positive[number] for number in gone)
    taught = [number for number in all_numbers(sites, "train") if positive[number]]
    removed = options.get("removed", 0.8)
    assert len(gone) == round(removed * (len(gone) + len(taught)))
    assert len(taught) > 0


@pytest.mark.parametrize("data", LABELS)
@pytest.mark.usefixtures("numbered")
def test_positives_are_removed_from_training_only(data):
    whole, thinned = load_sites(data, removed=0.0), load_sites(data)
    for part in ("validation", "test"):
        assert sorted(all_numbers(whole, part)) == sorted(all_numbers(thinned, part))
    assert set(all_numbers(thinned, "train")) < set(all_numbers(whole, "train"))
    total = len(LABELS[data])
    assert [len(all_numbers(whole, part)) / total for part in PARTS] == pytest.approx([0.7, 0.1, 0.2], abs=2e-3)


@pytest.mark.usefixtures("numbered")
def test_the_data_seed_decides_everything():
    once, again, other = (load_sites("digits", alpha=0.5, data_seed=seed) for seed in (3, 3, 4))
    assert held(once) == held(again)
    for part in PARTS:
        assert set(all_numbers(once, part)) != set(all_numbers(other, part))


@pytest.mark.usefixtures("numbered")
def test_alpha_determines_how_different_sites_are():
    def largest_share(**options):
        """How much of each site its most frequent digit has, on average."""
        shares = [torch.bincount(LABELS["digits"][some]) for some in held(load_sites("digits", **options))]
        return np.mean([float(counts.max() / counts.sum()) for counts in shares])

    assert largest_share() < 0.25
    assert 0.4 < largest_share(alpha=0.1) < largest_share(alpha=0.001)


@pytest.mark.parametrize(("clients", "classes"), [(10, 2), (12, 1), (7, 4)])
@pytest.mark.usefixtures("numbered")
def test_each_site_has_as_many_classes_as_asked_for(clients, classes):
    sites = load_sites("digits", clients=clients, classes=classes)
    assert [len(set(LABELS["digits"][some].tolist())) for some in held(sites)] == [classes] * clients


@pytest.mark.parametrize("positive", ["3", "0,1", "9, 2"])
@pytest.mark.usefixtures("numbered")
def test_any_classes_can_be_the_positive_ones(positive):
    sites = load_sites("digits", positive=positive)
    wanted = {int(value) for value in positive.split(",")}
    for examples in sites.test:
        digit = LABELS["digits"][numbers(examples)].tolist()
        assert [label == 1 for label in examples.labels.tolist()] == [d in wanted for d in digit]


@pytest.mark.parametrize("data", LABELS)
def test_measurements_are_scaled_by_the_training_examples(data):
    """Only training examples are exactly standardised; constant columns become 0."""
    sites = load_sites(data, clients=4)
    train, test = (torch.cat([examples.inputs[:] for examples in part]).double() for part in (sites.train, sites.test))
    zeros, ones = torch.zeros(train.shape[1]).double(), torch.ones(train.shape[1]).double()
    varies = train.std(0) > 0
    assert varies.sum() > 25
    assert_close(train.mean(0), zeros, tolerance=1e-5)
    assert_close(train.std(0)[varies], ones[varies], tolerance=1e-4)
    assert (test.mean(0).abs()[varies] > 1e-3).any()
    assert all(torch.isfinite(part.inputs[:]).all() for part in [*sites.train, *sites.validation, *sites.test])


def test_only_training_examples_determine_the_scaling(monkeypatch):
    """The training inputs don't change if all other inputs are multiplied by a thousand."""
    inputs, labels = breast_cancer()
    before = load_sites("breast_cancer", clients=3)
    _, validation, test = train_validation_test(len(labels), 0)
    inputs[torch.cat([validation, test])] *= 1000
    monkeypatch.setitem(datasets.DATASETS, "breast_cancer", lambda: Examples(inputs, labels))
    after = load_sites("breast_cancer", clients=3)
    for examples, other in zip(after.train, before.train, strict=True):
        assert torch.equal(examples.inputs[:], other.inputs[:])
    for examples in [*after.validation, *after.test]:
        assert examples.inputs[:].abs().max() > 100


def test_a_note_says_how_rare_positives_are():
    sites = load_sites("breast_cancer", clients=3)
    labels = torch.cat([examples.labels for examples in sites.train])
    count, total = int(labels.sum()), len(labels)
    assert sites.notes == [f"breast_cancer: {count} of {total} training examples are positive ({count / total:.1%})"]


# ------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_pictures_keep_their_published_test_set(monkeypatch, name):
    def pictures(first, number):
        inputs = torch.zeros(number, 1, 1, 2, dtype=torch.uint8)
        which = torch.arange(first, first + number)
        inputs[:, 0, 0, 0], inputs[:, 0, 0, 1] = which // 256, which % 256
        return Examples(inputs, which % 10)

    monkeypatch.setitem(datasets.IMAGES, name, lambda: Images(pictures(0, 400), pictures(400, 100)))
    sites = load_sites(name, clients=4, alpha=0.5)

    def found(part):
        flat = [Examples(examples.inputs[:].flatten(1), examples.labels) for examples in getattr(sites, part)]
        return sorted(number for examples in flat for number in numbers(examples))

    assert found("test") == list(range(400, 500))
    assert len(found("validation")) == 40
    assert len(found("train")) == 360 - round(
        0.8 * sum(n % 10 >= 5 for n in set(range(400)) - set(found("validation")))
    )
    assert {examples.inputs.dtype for examples in sites.train} == {torch.uint8}
    assert not set(found("train")) & set(found("validation"))


# ----------------------------------------------------------------------------------------- own tables


def table(**changes) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = {
        "income": rng.normal(50, 10, 60).round(2),
        "bank": np.repeat(["east", "north", "west"], 20),
        "fraud": np.tile([1, 0, 0, 0], 15),
    }
    return pd.DataFrame(columns | changes)


@pytest.fixture
def written(tmp_path):
    def write(**changes):
        table(**changes).to_csv(tmp_path / "banks.csv", index=False)
        return str(tmp_path / "banks.csv")

    return write


def test_a_users_table_has_sites_and_a_preparation(written):
    sites = load_sites(written(), "fraud", "bank")
    assert sites.names == ["east", "north", "west"]
    assert [len(examples.labels) for part in sites[1:4] for examples in part] == [12] * 3 + [4] * 6
    assert int(sum(examples.labels.sum() for part in sites[1:4] for examples in part)) == 15  # none is taken out
    train = torch.cat([examples.inputs[:] for examples in sites.train])
    assert train.mean().item() == pytest.approx(0, abs=1e-6)
    assert sites.preparation.apply(table()).shape == (60, 1)


def test_each_file_of_a_folder_is_a_site(tmp_path):
    (tmp_path / "banks").mkdir()
    for name, part in table().groupby("bank"):
        part.drop(columns="bank").to_csv(tmp_path / "banks" / f"{name}.csv", index=False)
    assert load_sites(str(tmp_path / "banks"), "fraud").names == ["east", "north", "west"]


def test_the_data_seed_determines_the_split_of_a_users_table(written):
    path = written()
    once, again, other = (load_sites(path, "fraud", "bank", data_seed=seed) for seed in (0, 0, 1))
    assert torch.equal(once.test[0].inputs, again.test[0].inputs)
    assert not torch.equal(once.test[0].inputs, other.test[0].inputs)


# ------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("name", ["digitz", "mnits"])
def test_an_unknown_name_is_refused_with_the_nearest(name):
    with pytest.raises(UnknownName, match=f"unknown data '{name}'; did you mean "):
        load_sites(name)


def test_a_users_table_needs_a_label(written):
    with pytest.raises(FedcsoError, match=r"--label is missing: name the column of .* \(it has income, bank, fraud\)"):
        load_sites(written(), site="bank")


@pytest.mark.parametrize("positive", ["five", "1;2", "1.5"])
def test_positives_that_are_not_numbers_are_refused(positive):
    with pytest.raises(InvalidValue, match=f"positive = '{positive}' .*whole numbers"):
        load_sites("digits", positive=positive)


@pytest.mark.parametrize(("data", "positive"), [("digits", "11"), ("breast_cancer", "0,1")])
def test_positives_must_be_some_but_not_all_labels(data, positive):
    with pytest.raises(InvalidValue, match=r"positive = .*some, not all, of the labels there are: \[0, 1"):
        load_sites(data, positive=positive)


@pytest.mark.parametrize(
    ("field", "value"), [("removed", 1.0), ("removed", -0.1), ("alpha", -1.0), ("clients", 0), ("classes", 11)]
)
def test_numbers_out_of_range_are_refused(field, value):
    with pytest.raises(InvalidValue, match=f"{field} = {value}"):
        load_sites("digits", **{field: value})


# ------------------------------------------------------------------------- sites that have no positives


def test_half_of_the_sites_with_one_class_each_have_no_positives_and_are_named():
    task = auprc("linear", data="breast_cancer", clients=4, classes=1)
    able = [bool(data.labels.any()) for data in task.clients]
    assert 0 < sum(able) < 4
    idle = [name for name, trains in zip(task.names, able, strict=True) if not trains]
    told = [note.split()[1] for note in task.notes if "takes part in evaluation only" in note]
    assert told == idle


@pytest.mark.parametrize("maker", [auroc, cross_entropy])
def test_methods_that_need_no_positives_train_at_all_sites(maker):
    task = maker("linear", data="breast_cancer", clients=4, classes=1)
    assert list(Job(FedAvg(), task, Plan()).able) == [0, 1, 2, 3]
    assert len(task.notes) == 1


@pytest.mark.parametrize("engine", ["reference", "stacked", "threads"])
def test_sites_without_positives_do_not_train_and_have_undefined_metrics(engine):
    task = auprc("linear", data="breast_cancer", clients=4, classes=1)
    idle = [n for n, data in enumerate(task.clients) if not data.labels.any()]
    plan = Plan(rounds=3, local_steps=2, outer_batch=2, inner_batch=3)
    trace = run_on(engine, FCSG(0.1), task, plan)
    assert is_finite(trace.shared)
    assert [trace.participation[n] for n in range(4)] == [0 if n in idle else 3 for n in range(4)]
    rows = client_rows({"FCSG": [[trace]]}, [0], task, lambda run: run.last)
    assert [row["client"] for row in rows if row["average_precision"] == "undefined"] == [task.names[n] for n in idle]
    assert all(row["prevalence"] in (0.0, 1.0) for row in rows)
    assert all(0 < row["average_precision"] < 2 for row in rows if int(row["client"]) not in idle)
    (last,) = {row["client_average_precision"] for row in trace.rows[-1:]}
    assert last == last  # the mean over those for whom it is defined


def test_participants_are_drawn_from_all_sites_that_can_train():
    case, plan = auprc_case((9, 3), (5, 0), (8, 2), (4, 0), (7, 1)), Plan(rounds=20, participation=2)
    job = Job(FCSG(), case, plan, seed=4)
    assert job.able == [0, 2, 4]
    drawn = [job.participants(r) for r in range(plan.rounds)]
    assert all(len(some) == 2 and some == sorted(some) for some in drawn)
    assert {n for some in drawn for n in some} == {0, 2, 4}
    places = torch.randperm(3, generator=stream(4, SERVER, 0))[:2]
    assert drawn[0] == sorted([0, 2, 4][place] for place in places)


def test_a_fraction_refers_to_the_sites_that_can_train():
    case = auprc_case((9, 3), (5, 0), (8, 2), (4, 0), (7, 1), (6, 2))
    job = Job(FCSG(), case, Plan(participation=0.5))
    assert len(job.participants(0)) == 2


def test_more_participants_than_can_train_are_refused():
    case = auprc_case((9, 3), (5, 0), (8, 2))
    with pytest.raises(InvalidValue, match=r"participation = 3 must be at most 2, the number of clients that train"):
        Job(FCSG(), case, Plan(participation=3))


def test_it_is_an_error_if_no_site_can_train():
    case = auprc_case((9, 0), (5, 0))
    with pytest.raises(InvalidValue, match="at least one client with training data"):
        Job(FCSG(), case, Plan())


def test_a_single_site_without_positives_cannot_be_trained_on_alone():
    alone = {name: auprc("linear", train_on=name, data="breast_cancer", clients=4, classes=1) for name in "0123"}
    idle = [task for task in alone.values() if not task.clients[0].labels.any()]
    assert 0 < len(idle) < 4
    for task in idle:
        with pytest.raises(FedcsoError, match="at least one client with training data"):
            Job(FCSG(), task, Plan())


def test_a_site_may_have_no_training_examples():
    case = auprc_case((9, 3), (0, 0), (8, 2))
    trace = run_on("stacked", FCSG(0.1), case, Plan(rounds=2, local_steps=2, weights="size"))
    assert trace.participation == {0: 2, 2: 2}
    assert is_finite(trace.last)
    assert case.problem.size(labelled(0, 0)) == 0
