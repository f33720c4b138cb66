"""One typed configuration from options and files, and what it makes."""

from pathlib import Path

import pytest
import yaml

from fedcso.algorithms.fcsg import FCSG
from fedcso.algorithms.fcsg_m import FCSGM
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.plan import Plan
from fedcso.core.recommended import recommended
from fedcso.problems import PROBLEMS
from fedcso.runs.callbacks import Rhythm
from fedcso.runs.config import MAIN, RunConfig, option_names
from fedcso.runs.methods import Method, hyper_parameters, parse_methods
from fedcso.runs.options import read_options

OWN = """
from dataclasses import dataclass
from fedcso.algorithms import FCSG

@dataclass(frozen=True)
class Mine(FCSG):
    friction: float = 0.5
    rounds: int = 3
    noise: float = 0.25
"""


def from_options(*arguments):
    return RunConfig.from_flat(read_options("run", "A run.", [str(argument) for argument in arguments]))


def algorithms_of(config):
    return [method.algorithm for method in config.built().values()]


def test_only_a_problem_must_be_named():
    config = RunConfig.from_flat({"problem": "nested_quadratic"})
    assert config == RunConfig("nested_quadratic")
    assert [method.text for method in config.methods] == list(MAIN)
    assert (config.plan, config.seeds, config.checkpoints) == (Plan(), (0, 1, 2), Rhythm())
    with pytest.raises(FedcsoError, match="problem is missing"):
        RunConfig.from_flat({"rounds": 3})


@pytest.mark.parametrize("problem", PROBLEMS)
def test_options_become_the_same_configuration_by_way_of_a_file(problem):
    sizes = ["--clients", 3, "--seeds", "5,6", "--participation", 2]
    config = from_options(problem, *sizes, "--learning-rate", "cosine(1, 5)")
    assert config.problem_options["clients"] == 3
    assert config.plan.participation == 2
    recommends = recommended(PROBLEMS[problem]).settings
    used = {name for method in config.methods for name in hyper_parameters(method.kind)}
    expected = {name: value for name, value in recommends.items() if name in used} | {"learning_rate": "cosine(1, 5)"}
    assert config.hyper_parameters == expected
    assert config.seeds == (5, 6)
    file = yaml.safe_dump(config.flat(), sort_keys=False)
    assert RunConfig.from_flat(yaml.safe_load(file)) == config


def test_a_flat_one_has_every_name_once_and_nothing_that_is_not_set():
    flat = RunConfig("invariant_logistic", {"clients": 3}, hyper_parameters={"momentum": 0.3}, name="trial").flat()
    assert list(flat)[:4] == ["problem", "algorithm", "seeds", "momentum"]
    assert list(flat)[-1] == "name"
    assert None not in flat.values()
    assert flat["clients"] == 3
    assert not {"ranks", "initial_batch", "plan", "methods", "root"} & flat.keys()


def test_names_of_others_are_left_alone():
    flat = {"problem": "nested_quadratic", "sites": "3", "round_seconds": 1.0, "command": "flower"}
    assert RunConfig.from_flat(flat) == RunConfig("nested_quadratic")


def test_it_makes_the_task_the_methods_and_units_of_work():
    methods = ["--algorithm", "FCSG", "FCSG-M(momentum=0.2)", "--momentum", 0.7, "--learning-rate", "0.3"]
    config = from_options("nested_quadratic", "--clients", 2, *methods)
    task = config.task()
    assert len(task.clients) == 2
    assert config.built() == {"FCSG": Method(FCSG(0.3)), "FCSG-M(momentum=0.2)": Method(FCSGM(0.3, 0.2))}
    units = config.units(task)
    assert [unit.labels for unit in units] == [{"method": "FCSG"}, {"method": "FCSG-M(momentum=0.2)"}]
    assert [unit.seeds for unit in units] == [(0, 1, 2)] * 2
    assert config.study(units, Path("folder")).folder == Path("folder/checkpoints")


def test_whole_numbers_stay_whole(tmp_path):
    """An option or a line of a file that says 7 is an int, so that it can be a count; 7.0 is not."""
    coda = ["auroc", "--algorithm", "CODA+"]
    (tmp_path / "run.yaml").write_text("stage_steps: 7\n")
    for given in (["--stage-steps", 7], ["--config", tmp_path / "run.yaml"]):
        (method,) = algorithms_of(from_options(*coda, *given, "--learning-rate", 1))
        assert (method.stage_steps, method.learning_rate) == (7, 1)
    with pytest.raises(InvalidValue, match=r"stage_steps = 7\.0 must be a whole number"):
        from_options(*coda, "--stage-steps", "7.0").built()


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"name": "a/b"}, InvalidValue, "name = 'a/b'"),
        ({"ranks": 2}, InvalidValue, "ranks = 2"),
        ({"engine": "warp"}, UnknownName, "unknown engine 'warp'"),
        ({"estimator": "plane"}, UnknownName, "unknown estimator 'plane'; did you mean plain"),
        ({"checkpoint_rounds": -1}, InvalidValue, "checkpoint_rounds = -1"),
        ({"seeds": "some"}, InvalidValue, "seeds = 'some'"),
        ({"seeds": 2**31}, InvalidValue, "seeds = 2147483648 must be at most 100000 seeds"),
        ({"seeds": 10**400}, InvalidValue, "must be at most 100000 seeds"),
        ({"seeds": [float("inf")]}, InvalidValue, r"seeds = \[inf\]"),
        ({"rounds": "many"}, InvalidValue, "rounds = 'many'"),
        ({"algorithm": []}, InvalidValue, "at least one method"),
        ({"algorithm": 3}, InvalidValue, "algorithm = 3 must be a name or a list of names"),
        ({"algorithm": {"FCSG": 1}}, InvalidValue, "must be a name or a list of names"),
        ({"algorithm": ["FCSG", ["FCSG-M"]]}, InvalidValue, "must be a name or a list of names"),
        ({"engine": []}, UnknownName, r"unknown engine \[\]"),
        ({"estimator": 7}, UnknownName, "unknown estimator 7"),
        ({"estimator": {"a:b": 1}}, UnknownName, "unknown estimator {'a:b': 1}"),
        ({"momentum": 0.5, "algorithm": "FCSG"}, InvalidValue, "momentum = 0.5 .* none of FCSG has it"),
    ],
)
def test_mistakes_in_a_file_are_told(change, error, told):
    with pytest.raises(error, match=told):
        RunConfig.from_flat({"problem": "nested_quadratic"} | change).built()


def test_a_folder_is_called_after_the_problem_unless_it_has_a_name():
    assert RunConfig("own/problem.py:task").title == "problem"
    assert RunConfig("auprc", name="trial").title == "trial"


def test_options_that_a_function_hands_on_are_known():
    assert {"data", "clients", "margin"} <= option_names("auprc")


# ----------------------------------------------------------------------------------- one's own methods


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    return f"{tmp_path / 'mine.py'}:Mine"


def test_hyper_parameters_of_an_own_method_are_options(mine):
    config = from_options("nested_quadratic", "--algorithm", mine, "FCSG", "--friction", 0.125, "--learning-rate", 0.1)
    own, other = algorithms_of(config)
    assert (own.friction, own.learning_rate, other.learning_rate) == (0.125, 0.1, 0.1)


def test_they_may_stand_in_a_file(mine, tmp_path):
    (tmp_path / "run.yaml").write_text(f"problem: nested_quadratic\nalgorithm: '{mine}'\nfriction: 0.125\n")
    (own,) = algorithms_of(from_options("--config", tmp_path / "run.yaml"))
    assert own.friction == 0.125


def test_options_of_the_run_and_the_problem_keep_their_names(mine):
    """A hyper-parameter of the same name is set in brackets."""
    config = from_options("invariant_logistic", "--algorithm", f"{mine}(noise=0.5)", "--rounds", 7, "--noise", 2.0)
    assert config.plan.rounds == 7
    assert config.problem_options["noise"] == 2.0
    (own,) = algorithms_of(config)
    assert (own.rounds, own.noise) == (3, 0.5)


def test_a_method_that_is_not_named_has_no_options(mine):
    with pytest.raises(Exception, match="unknown option --friction"):
        from_options("nested_quadratic", "--algorithm", "FCSG", "--friction", 0.1)


def test_the_files_it_depends_on_are_known(mine, tmp_path):
    config = RunConfig("nested_quadratic", methods=parse_methods([mine, f"{mine}(friction=0.1)", "FCSG"]))
    (source,) = config.sources()
    assert source.path == tmp_path / "mine.py"
    assert source.content.decode() == OWN
    assert RunConfig("nested_quadratic").sources() == []


def test_methods_that_do_not_fit_the_problem_are_left_out_with_a_note():
    config = from_options("nested_quadratic", "--algorithm", "FCSG", "SOX", "BSGD", "--clients", "3")
    task = config.task()
    assert [unit.name for unit in config.units(task)] == ["FCSG"]
    notes = [note for note in task.notes if "left out" in note]
    assert [note.partition(":")[0] for note in notes] == ["SOX is left out", "BSGD is left out"]
    assert "never draws the same outer sample twice" in notes[0]


def test_if_no_method_fits_the_first_refusal_is_raised():
    config = from_options("nested_quadratic", "--algorithm", "SOX", "BSGD", "--clients", "3")
    with pytest.raises(FedcsoError, match=r"^SOX can't keep a state"):
        config.units(config.task())
