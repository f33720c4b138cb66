"""Objects from a user's file."""

import pytest

from fedcso.core.errors import UnknownName
from fedcso.core.user_code import load

FILE = """
import math
from functools import partial
from pathlib import Path

class Mine: ...
def task(): ...
small = partial(task)
SIZE = 3
_hidden = 1
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(FILE)
    return tmp_path


@pytest.mark.parametrize("name", ["Mine", "task", "small", "SIZE"])
def test_what_the_file_defines_is_found(own, name):
    assert load("problem", f"own.py:{name}", own) is load("problem", f"own.py:{name}", own)


def test_a_wrong_name_is_answered_with_what_the_file_defines_and_not_with_what_it_imports(own):
    with pytest.raises(UnknownName, match=r"unknown name in own\.py 'tsk'; did you mean task\?") as raised:
        load("problem", "own.py:tsk", own)
    assert "(known: Mine, SIZE, small, task)" in str(raised.value)
