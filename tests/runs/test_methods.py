"""Methods as they are asked for, and the settings they are built with."""

import pytest

from fedcso.algorithms import ALGORITHMS, CODA, FAFED, AccFCSGM, FedAdam, FedAvgM, FedProx
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


# ------------------------------------------------------------------------------------ methods inside others

NESTED = {
    "FedAdam": FedAdam(),
    "FedAdam(base=FCSG-M, server_rate=0.1)": FedAdam(FCSGM(), 0.1),
    "FedAdam(server_rate=0.1, base=FCSG-M(momentum=0.5))": FedAdam(FCSGM(momentum=0.5), 0.1),
    "FedProx(base=FedAdam(base=fcsg-m(learning_rate=cosine(0.1, 5), momentum=0.5)))": FedProx(
        FedAdam(FCSGM(Cosine(0.1, 5), 0.5))
    ),
    "FedAvgM(base=CODA+(stage_steps=7), server_momentum=0)": FedAvgM(CODA(stage_steps=7), server_momentum=0),
    "FedAvgM(base='CODA+')": FedAvgM(CODA()),
    "FAFED": FAFED(AccFCSGM()),
}


@pytest.mark.parametrize("text", NESTED)
def test_a_method_inside_another_is_written_in_the_same_form(text):
    spec = MethodSpec.parse(text)
    method = spec.build({})
    assert method == Method(NESTED[text])
    assert MethodSpec.parse(spec.spell(method)).build({}) == method


@pytest.mark.parametrize("base", ["FCSG-N", "FCSG-M(momentun=1)", "3", "FCSG-M(momentum=0.5", ""])
def test_a_wrong_method_inside_is_refused(base):
    with pytest.raises(FedcsoError, match=r"algorithm|momentum|FedAdam"):
        MethodSpec.parse(f"FedAdam(base={base})")


def test_common_settings_reach_every_level_and_brackets_come_first():
    common = {"learning_rate": "0.3", "momentum": 0.7, "server_rate": 0.2, "base": "FCSG-M"}
    texts = ["FedAdam", "FedAvgM(base=FedAdam(server_rate=0.4), server_rate=0.6)", "FedProx(base=FCSG-M(momentum=0.5))"]
    assert [method.algorithm for method in build_all(parse_methods(texts), common).values()] == [
        FedAdam(FCSGM(0.3, 0.7), 0.2),
        FedAvgM(FedAdam(FCSGM(0.3, 0.7), 0.4), 0.6),
        FedProx(FCSGM(0.3, 0.5)),
    ]


def test_a_common_base_is_put_in_once():
    (method,) = build_all(parse_methods(["FedProx"]), {"base": "FedAdam"}).values()
    assert method.algorithm == FedProx(FedAdam(FCSG()))
    spec = MethodSpec.parse("FedProx")
    assert spec.build({}, {"base": MethodSpec.parse("FedProx")}).algorithm == FedProx(FedProx(FCSG()))


def test_a_setting_that_no_level_has_is_refused():
    with pytest.raises(InvalidValue, match=r"momentum = 0.5 .* none of FedAdam has it"):
        build_all(parse_methods(["FedAdam"]), {"momentum": 0.5})


def test_what_a_wrapper_sends_is_that_of_the_method_inside():
    plain, with_u = parse_methods(["FedAdam", "FedAdam(base=FCSG-M, send_u=int8)"])
    assert "send_u" not in plain.parameters({})
    assert "send_u" in with_u.parameters({})
    assert with_u.build({}) == Method(FedAdam(FCSGM()), Int8())
    assert MethodSpec.parse(with_u.spell(with_u.build({}))).build({}) == with_u.build({})


def test_how_u_is_sent_is_a_setting_of_the_outer_method():
    with pytest.raises(InvalidValue, match="send_u = 'int8' must be a setting of FedAdam, not of its base"):
        MethodSpec.parse("FedAdam(base=FCSG-M(send_u=int8))")


def test_tuned_values_reach_the_level_that_has_them():
    spec = MethodSpec.parse("FedAdam(base=FCSG-M(momentum=0.5))")
    assert spec.build({}, {"momentum": 0.1, "server_rate": 0.2}).algorithm == FedAdam(FCSGM(momentum=0.1), 0.2)
    assert spec.parse_several("base", "FCSG, FCSG-M(momentum=0.5)") == [
        MethodSpec.parse("FCSG"),
        MethodSpec.parse("FCSG-M(momentum=0.5)"),
    ]


OWN_WRAPPER = """
from dataclasses import dataclass
from fedcso.algorithms import FCSG, FedProx
from fedcso.core.algorithm import Algorithm

@dataclass(frozen=True)
class Outer(FedProx):
    base: Algorithm = FCSG(0.5)
"""


def test_an_own_method_is_inside_another_or_around_it(mine, tmp_path):
    inside = MethodSpec.parse(f"FedAdam(base={mine}(friction=0.1))")
    built = inside.build({})
    assert built.algorithm.base.friction == 0.1
    assert MethodSpec.parse(inside.spell(built)).build({}) == built
    assert owners([inside])["friction"] == [mine]
    (tmp_path / "outer.py").write_text(OWN_WRAPPER)
    outer = MethodSpec.parse("outer.py:Outer", tmp_path)
    assert outer.build({}).algorithm.base == FCSG(0.5)
    assert outer.build({"learning_rate": 0.1}).algorithm.base == FCSG(0.1)
    assert MethodSpec.parse("FedAdam(base=mine.py:Mine)", tmp_path).build({}).algorithm.base.friction == 0.5


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
    wrappers = ALGORITHMS.groups()["wrappers around any method"]
    assert having["learning_rate"] == [name for name in (*ALGORITHMS, mine) if name not in wrappers]
    assert having["base"] == wrappers


def test_a_path_begins_at_the_root(tmp_path, mine):
    assert MethodSpec.parse("mine.py:Mine", tmp_path).kind is MethodSpec.parse(mine).kind
