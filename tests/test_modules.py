"""Modules are reached by their names: no function or class of a package hides a module of the same name."""

import importlib
import pkgutil
import warnings

import pytest

import fedcso

MODULES = [
    module.name
    for module in pkgutil.walk_packages(fedcso.__path__, "fedcso.")
    if module.name != "fedcso.__main__"  # which runs the command line
]


def attribute(name):
    found = fedcso
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def test_the_attribute_of_a_package_is_the_module_of_that_name():
    pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of packages that Flower imports
        modules = {name: importlib.import_module(name) for name in MODULES}
    assert [name for name, module in modules.items() if attribute(name) is not module] == []
