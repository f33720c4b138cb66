"""The names of the package's root: loaded lazily, and the same for programs, type checkers and readers."""

import ast
import inspect
import subprocess
import sys

import pytest

import fedcso


def test_every_public_name_is_there():
    for name in fedcso.__all__:
        assert getattr(fedcso, name) is not None
    assert set(fedcso.__all__) <= set(dir(fedcso))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Probelm'"):
        _ = fedcso.Probelm


def test_type_checkers_see_the_same_names_from_the_same_places():
    tree = ast.parse(inspect.getsource(fedcso))
    block, _ = [node for node in tree.body if isinstance(node, ast.If)]  # the imports for them, and for programs
    seen = {name.name: line.module for line in block.body for name in line.names}
    assert seen == fedcso._PLACES
    assert {*seen, "__version__"} == set(fedcso.__all__)


def test_importing_the_package_loads_nothing_heavy():
    heavy = "torch", "scipy", "matplotlib", "pandas", "sklearn"
    script = f"import sys, fedcso; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
