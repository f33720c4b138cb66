"""The parser: names of options, values given several times, help and errors."""

import pytest

from fedcso.runs.parser import Parser, UsageError, join_repeated, simple_parser, use_underscores


def test_dashes_become_underscores_in_names_alone():
    given_ones = ["--local-steps", "5", "--name=a-b", "--name", "x-y", "-1", "--seeds=-1", "FCSG-M(momentum=0.5)"]
    assert use_underscores(given_ones) == [
        *("--local_steps", "5", "--name=a-b", "--name", "x-y", "-1", "--seeds=-1", "FCSG-M(momentum=0.5)")
    ]


def test_the_values_of_a_repeated_option_are_joined():
    given_ones = ["--algorithm", "FCSG", "--rounds", "3", "--algorithm=FCSG-M", "SCAFFOLD"]
    assert join_repeated(given_ones) == ["--rounds", "3", "--algorithm", '["FCSG", "FCSG-M", "SCAFFOLD"]']


@pytest.fixture
def parser():
    parser = simple_parser("try", "Try something.\n\nThis takes long.\n\nexamples:\n  fedcso try a --local-steps 3\n")
    parser.add_argument("folder", help="the folder")
    parser.add_argument("--local_steps", type=int, default=5, help="Q, the steps.")
    parser.add_argument("--share", type=int | float, default=1.0, help="A share.")
    parser.add_argument("--start", type=int | None, help="where to start")
    parser.add_argument("--names", type=list[str] | str, default=["a", "b"], help="names")
    parser.add_argument("--exact", type=bool, default=False, help="be exact")
    parser.add_argument("--kind", choices=["plain", "fancy"], default="plain", help="the kind")
    parser.add_argument("--fast", action="store_true", help="be fast")
    return parser


def test_help_has_description_options_and_examples_in_this_order(parser):
    text = parser.format_help()
    parts = ["usage: fedcso try", "Try something.\n\nThis takes long.", "-h, --help", "examples:\n  fedcso try a"]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)


def test_help_shows_dashes_and_the_defaults_that_there_are_but_no_types(parser):
    lines = " ".join(parser.format_help().split())
    for shown in (
        "--local-steps LOCAL_STEPS Q, the steps (default: 5)",
        "--share SHARE a share (default: 1.0)",
        "--start START where to start --",
        "names (default: a b)",
        "{true,false} be exact (default: false)",
        "--fast be fast",
    ):
        assert shown in lines
    assert "_" not in lines.replace("LOCAL_STEPS", "")
    assert "type:" not in lines
    assert "--names+" not in lines
    assert lines.count("(default:") == 5


MISTAKES = {
    "unknown option --lokal-steps; did you mean --local-steps? (see: fedcso try --help)": ["a", "--lokal-steps", "3"],
    "unknown option --zzz (see: fedcso try --help)": ["a", "--zzz=3"],
    "unexpected argument 'b' (see: fedcso try --help)": ["a", "b", "c"],
    "folder is missing (see: fedcso try --help)": [],
    "--local-steps is given without a value (see: fedcso try --help)": ["a", "--local-steps"],
    "local_steps = 'many' must be a whole number": ["a", "--local-steps", "many"],
    "local_steps = 1.5 must be a whole number": ["a", "--local-steps", "1.5"],
    "local_steps = '' must be a whole number": ["a", "--local-steps", ""],
    "local_steps = [1, 2] must be a whole number": ["a", "--local-steps", "[1, 2]"],
    "share = 'most' must be a number": ["a", "--share", "most"],
    "start = 'here' must be a whole number": ["a", "--start", "here"],
    "exact = 'maybe' must be true or false": ["a", "--exact", "maybe"],
    "kind = 'odd' must be one of 'plain', 'fancy'": ["a", "--kind", "odd"],
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_explained(parser, message):
    with pytest.raises(UsageError) as raised:
        parser.parse_args(MISTAKES[message])
    assert str(raised.value) == message


def test_a_value_of_the_wrong_type_in_a_file_is_explained():
    parser = Parser(prog="fedcso try")
    parser.add_argument("--seeds", type=list[int] | int | str, default=3)
    with pytest.raises(UsageError, match=r"^seeds = \{'a': 1\} must be a whole number or text or a list$"):
        parser.parse_object({"seeds": {"a": 1}})
    with pytest.raises(UsageError, match=r"^unknown option 'seed'; did you mean seeds\?"):
        parser.parse_object({"seed": 1})


def test_a_number_beyond_floats_is_explained():
    parser = Parser(prog="fedcso try")
    parser.add_argument("--rate", type=float)
    with pytest.raises(UsageError, match="a whole number is too large"):
        parser.parse_args(["--rate", "1" + "0" * 400])
