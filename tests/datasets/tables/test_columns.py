"""What a column holds; messages stay short, whatever its name and values."""

import pandas as pd
import pytest

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.columns import kind, numbers


@pytest.mark.parametrize(("read", "cells"), [(kind, [b"x", b"y"]), (numbers, ["1.5", "9" * 10_000])])
def test_of_endless_names_and_values_the_beginning_is_shown(read, cells):
    with pytest.raises(FedcsoError) as refused:
        read(pd.Series(cells, name="a" * 10_000, dtype=object))
    assert len(str(refused.value)) < 3000
