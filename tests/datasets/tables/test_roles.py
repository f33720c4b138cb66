"""The roles that the user gives to columns are respected, and contradictions are reported."""

import pytest

from fedcso.core.errors import InvalidValue, UnknownName
from fedcso.datasets.tables.roles import Roles, in_common, names_of

NAMES = ["a", "", "b", "site", "c", "y"]


def test_all_columns_except_label_and_site_are_used():
    assert Roles("y", "site").features(NAMES) == ["a", "b", "c"]
    assert Roles("y").features(NAMES) == ["a", "b", "site", "c"]


def test_the_user_chooses_columns_in_the_order_of_the_table():
    assert Roles("y", "site", drop=("b",)).features(NAMES) == ["a", "c"]
    assert Roles("y", "site", columns=("c", "a", "y")).features(NAMES) == ["a", "c"]


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"site": "y"}, "site = 'y' .* another column than the label"),
        ({"site": "s", "drop": ("s",)}, "drop = 's' .* the label or the site"),
        ({"drop": ("y",)}, "drop = 'y' .* the label or the site"),
        ({"drop": ("a", "b"), "columns": ("b", "c")}, "drop = 'b' .* not named by --columns too"),
    ],
)
def test_contradictions_are_refused(roles, message):
    with pytest.raises(InvalidValue, match=message):
        Roles("y", **roles)


@pytest.mark.parametrize("roles", [Roles("y", drop=("aa",)), Roles("y", columns=("b", "aa"))])
def test_an_unknown_column_is_reported_with_the_nearest(roles):
    with pytest.raises(UnknownName, match=r"unknown column 'aa'; did you mean a\?"):
        roles.require_known(NAMES)


def test_names_are_separated_by_commas_and_may_have_commas_in_quotes():
    assert names_of("") == ()
    assert names_of("a, b,c") == ("a", "b", "c")
    assert names_of('a,"weight, kg"') == ("a", "weight, kg")
    assert names_of(["weight, kg"]) == ("weight, kg",)


def test_columns_of_several_tables():
    kept, notes = in_common([("a", ["x", "z", "v"]), ("b", ["x", "w", "v"]), ("c", ["v", "w", "x"])])
    assert kept == ["x", "v", "w"]
    assert notes == [
        "z: left out, because only a has this column",
        "w: there is no such column in a; its values are missing there",
    ]
    assert in_common([("a", ["x", "y"])]) == (["x", "y"], [])
