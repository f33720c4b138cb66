"""The data that benchmarks of `fedcso fit` make."""

import numpy as np
import pytest

from benchmarks.large_table import LABEL, POSITIVE, SITE, SITES, make_table
from benchmarks.unseen_pictures import write_pictures
from fedcso.datasets.tables.sites import load_sites


def test_a_large_table_has_rare_positives_text_and_gaps_at_several_sites(tmp_path):
    table = make_table(2000, 40)
    assert table.shape == (2000, 42)
    assert table[LABEL].mean() == pytest.approx(POSITIVE)
    assert table[SITE].nunique() == SITES
    table.to_csv(tmp_path / "table.csv", index=False)
    sites = load_sites(str(tmp_path / "table.csv"), LABEL, SITE)
    names = sites.preparation.names
    assert {"x0", "x6 is missing", "word9 = w5"} <= set(names)


def test_pictures_of_the_first_characters_are_positive_and_drawers_are_at_one_site(tmp_path):
    characters = np.arange(100 * 20).reshape(100, 20, 1, 1).repeat(16, 2).repeat(16, 3).astype(np.uint8)
    write_pictures(characters, tmp_path / "pictures.npz")
    with np.load(tmp_path / "pictures.npz") as arrays:
        assert arrays["pictures"].shape == (2000, 1, 16, 16)
        assert arrays["positive"].tolist() == [1] * 40 + [0] * 1960
        assert arrays["site"].reshape(100, 20)[7].tolist() == [n // 4 for n in range(20)]
