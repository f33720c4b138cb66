"""Methods as they are asked for, and the settings they are built with."""

import pytest

from fedcso.algorithms import ALGORITHMS
from fedcso.algorithms.fcsg import FCSG
from fedcso.algorithms.fcsg_m import FCSGM
from fedcso.codecs import Int8, Occasional
from fedcso.core.codec import full
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.schedules import Cosine
from fedcso.runs.methods import Method, MethodSpec, build_all, owners, parse_methods

OWN = """
from __future__ import annotations
from dataclasses import dataclass
from typing import Literal
from fedcso.algorithms import FCSG

@dataclass(frozen=True)
class Mine(FCSG):
    friction: float = 0.5
    mode: str = "fast"
    norm: Literal["one", "two"] = "one"
    nesterov: bool = False
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    return f"{tmp_path / 'mine.py'}:Mine"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_is_found_by_its_name_in_any_case(name):
    for spelling in (name, name.lower(), name.upper(), f" {name} "):
        assert MethodSpec.parse(spelling) == MethodSpec(spelling, ALGORITHMS[name], {})


def test_an_algorithm_with_settings():
    method = MethodSpec.parse("FCSG-M(momentum=0.5, learning_rate=cosine(0.1, 5))")
    assert method.kind is FCSGM
    assert method.settings == {"momentum": 0.5, "learning_rate": Cosine(0.1, 5)}


@pytest.mark.parametrize(
    "spec", ["FCSG(0.5)", "FCSG(", "FCSG(a=1", "FCSG(a=1))", "FCSG(**x)", "FCSG() + 1", "FCSG(a=1)(b=2)"]
)
def test_a_broken_specification_is_refused(spec):
    with pytest.raises(FedcsoError, match="FCSG"):
        MethodSpec.parse(spec)


def test_an_unknown_option_suggests_the_nearest():
    with pytest.raises(UnknownName, match=r"option of FCSG-M 'momentun'; did you mean momentum\?"):
        MethodSpec.parse("FCSG-M(momentun=1)")


def test_common_settings_go_where_they_belong():
    methods = parse_methods(["FCSG", "FCSG-M(momentum=0.2)", "FCSG-M"])
    assert build_all(methods, {"learning_rate": "0.3", "momentum": 0.7}) == {
        "FCSG": Method(FCSG(0.3)),
        "FCSG-M(momentum=0.2)": Method(FCSGM(0.3, 0.2)),
        "FCSG-M": Method(FCSGM(0.3, 0.7)),
    }


def test_a_setting_that_no_method_has_is_refused():
    with pytest.raises(InvalidValue, match=r"momentum = 0.5 .* none of FCSG has it"):
        build_all(parse_methods(["FCSG"]), {"momentum": 0.5})


@pytest.mark.parametrize("codec", [full, Int8(), Occasional(3)])
def test_a_method_with_all_its_settings_can_be_asked_for_again(codec):
    method = Method(FCSGM(Cosine(0.1, 5), 0.25), codec)
    again = MethodSpec.parse(MethodSpec.parse("fcsg-m(momentum=0.5)").spell(method))
    assert again.build({}) == method


def test_a_way_to_send_u_goes_to_methods_that_share_it():
    specs = parse_methods(["FCSG", "FCSG-M", "FCSG-M(send_u=every(2))", "Local-SCGDM", "SCAFFOLD"])
    made = build_all(specs, {"send_u": "int8"})
    assert [method.codec for method in made.values()] == [full, Int8(), Occasional(2), Int8(), full]
    assert ["send_u" in spec.parameters({}) for spec in specs] == [False, True, True, True, False]
    assert MethodSpec.parse("FCSG-M").parse_several("send_u", "full, every(3)") == [full, Occasional(3)]


def test_a_method_without_u_is_told_so():
    with pytest.raises(InvalidValue, match=r"send_u = 'int8' .* FCSG does not share u"):
        build_all(parse_methods(["FCSG(send_u=int8)"]), {})
    with pytest.raises(InvalidValue, match=r"send_u = 'int8' .* none of FCSG, SCAFFOLD has it"):
        build_all(parse_methods(["FCSG", "SCAFFOLD"]), {"send_u": "int8"})


def test_settings_replace_common_and_own_ones():
    method = MethodSpec.parse("FCSG-M(momentum=0.2)")
    built = method.build({"learning_rate": "0.3", "momentum": "0.7"}, {"learning_rate": 0.9})
    assert built == Method(FCSGM(0.9, 0.2))


# ----------------------------------------------------------------------------------- one's own methods


def test_an_own_method_is_one_class_however_often_it_is_asked_for(mine):
    first, second = (MethodSpec.parse(f"{mine}(friction={value})") for value in (0.1, 0.2))
    assert first.kind is second.kind


def test_an_own_method_that_changes_is_another_class(mine, tmp_path):
    before = MethodSpec.parse(mine).kind
    (tmp_path / "mine.py").write_text(OWN.replace("0.5", "0.7"))
    after = MethodSpec.parse(mine).kind
    assert after is not before
    assert (before().friction, after().friction) == (0.5, 0.7)


def test_own_files_of_the_same_name_do_not_hide_each_other(tmp_path):
    for place, value in (("a", "0.1"), ("b", "0.2")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "mine.py").write_text(OWN.replace("0.5", value))
    kinds = [MethodSpec.parse(f"{tmp_path / place / 'mine.py'}:Mine").kind for place in ("a", "b", "a")]
    assert [kind().friction for kind in kinds] == [0.1, 0.2, 0.1]
    assert kinds[0] is kinds[2]


def test_the_settings_of_an_own_method_are_numbers_words_and_truth_values(mine):
    method = MethodSpec.parse(mine)
    common = {"friction": "0.25", "mode": "slow-ish", "norm": "two", "nesterov": "true"}
    expected = Method(method.kind(friction=0.25, mode="slow-ish", norm="two", nesterov=True))
    assert method.build(common) == expected
    assert MethodSpec.parse(method.spell(expected)).build({}) == expected
    assert method.parse_several("mode", "a, b-c") == ["a", "b-c"]


def test_it_is_known_who_has_a_hyper_parameter(mine):
    having = owners(parse_methods([mine, "FCSG"]))
    assert having["friction"] == [mine]
    assert having["proximity"] == ["CODA+", "CODASCA"]
    assert having["learning_rate"] == [*ALGORITHMS, mine]


def test_a_path_begins_at_the_root(tmp_path, mine):
    assert MethodSpec.parse("mine.py:Mine", tmp_path).kind is MethodSpec.parse(mine).kind
