import pytest
import torch

from fedcso.datasets.examples import Examples
from fedcso.fitting import thinning
from fedcso.fitting.thinning import at_most, choosing_rows, choosing_share


def examples(rows: int, every: int) -> Examples:
    """Return rows with their number as the input, of which every few are positive."""
    labels = torch.zeros(rows, dtype=torch.int64)
    labels[::every] = 1
    return Examples(torch.arange(rows).float()[:, None], labels)


def test_all_rows_choose_unless_there_are_very_many():
    sites = [examples(100, 5), examples(50, 10)]
    assert choosing_share(sites) == 1
    assert len(choosing_rows(sites).labels) == 150


def test_of_very_many_rows_a_part_chooses_in_which_sites_and_labels_have_their_shares(monkeypatch):
    monkeypatch.setattr(thinning, "ENOUGH_ROWS", 200)
    monkeypatch.setattr(thinning, "ENOUGH_POSITIVES", 10)
    first, second = examples(1000, 10), examples(3000, 10)
    chosen = choosing_rows([first, second])
    assert len(chosen.labels) == 200
    assert int(chosen.labels.sum()) == 20
    assert len(set(chosen.inputs[:50].flatten().tolist())) == 50
    assert chosen.inputs[:50].max() > 900  # from all over the site's rows


def test_rare_positives_are_not_thinned_below_what_is_needed(monkeypatch):
    monkeypatch.setattr(thinning, "ENOUGH_ROWS", 200)
    monkeypatch.setattr(thinning, "ENOUGH_POSITIVES", 20)
    assert choosing_share([examples(4000, 100)]) == pytest.approx(0.5)
    assert choosing_share([examples(4000, 1000)]) == 1


@pytest.mark.parametrize(
    ("rows", "every", "most", "kept"),
    [(100, 10, 200, (100, 10)), (1000, 10, 300, (300, 100)), (1000, 2, 300, (300, 150)), (1000, 1, 300, (300, 300))],
)
def test_training_rows_keep_the_positives_unless_these_are_more_than_half(rows, every, most, kept):
    some = at_most(examples(rows, every), most)
    assert (len(some.labels), int(some.labels.sum())) == kept
