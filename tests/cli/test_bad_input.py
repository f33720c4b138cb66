"""Every mistake on the command line ends with code 2 and one line that says what is wrong and what is allowed."""

import sys

import pytest
import yaml

from fedcso.runs import tracking
from tests.command_line import BAD_INPUT, BROKE_OFF, LOGISTIC, QUADRATIC, call, folders, run, without_drawing

FILES = {
    "list.yaml": "- invariant_logistic\n- 3\n",
    "broken.yaml": "problem: invariant_logistic\nrounds: [1\nseeds: }\n",
    "unknown_key.yaml": "problem: invariant_logistic\nnoize: 2\n",
    "wrong_type.yaml": "problem: invariant_logistic\nrounds: many\n",
    "no_methods.yaml": "problem: invariant_logistic\nalgorithm: []\n",
    "wrong_value.yaml": "problem: invariant_logistic\nrounds: 0\n",
    "no_problem.yaml": "rounds: 3\n",
    "number_for_problem.yaml": "problem: 3\n",
    "raises.py": "import torch\n\nraise RuntimeError('no data here')\n",
    "syntax.py": "def task(:\n    pass\n",
    "own.py": (
        "def raises():\n    raise RuntimeError('no data here')\n"
        "def wrong():\n    return 3\n"
        "def clashes(rounds: int = 3):\n    pass\n"
        "def untyped(size):\n    pass\n"
        "def clashes_elsewhere(samples: int = 3):\n    pass\n"
        "def needs(size: int):\n    pass\n"
        "def passes(**options):\n    return clashes(**options)\n"
        "number = 3\n"
    ),
}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder with some files in it, in which commands are called."""
    without_drawing(monkeypatch)
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def assert_refused(*arguments, says):
    """One line on standard error that says all this, code 2, and no folder."""
    outcome = call(*arguments)
    assert outcome.code == BAD_INPUT, outcome
    assert outcome.err.startswith("fedcso: ")
    assert outcome.err.count("\n") == 1, outcome.err
    for fragment in says:
        assert fragment in outcome.err
    assert " at 0x" not in outcome.err
    assert "<class" not in outcome.err
    return outcome


def run_with(*options):
    return ["run", *LOGISTIC, *options]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--algorithm", "FedAdam(base=FCSG-N)"], ["unknown algorithm 'FCSG-N'", "did you mean FCSG"]),
        (
            ["--algorithm", "FedAdam(base=FCSG-M(momentun=1))"],
            ["option of FCSG-M 'momentun'", "did you mean momentum?"],
        ),
        (["--algorithm", "FedAdam(base=FCSG-M(momentum=2))"], ["momentum = 2 must be a number in (0, 1]"]),
        (["--algorithm", "FedAdam(base=FCSG-M"], ["NAME or NAME(option=value, option=value)"]),
        (["--algorithm", "FedAdam(base=3)"], ["unknown algorithm '3'"]),
        (["--algorithm", "FedAdam", "--base", "0.5"], ["unknown algorithm '0.5'"]),
        (["--algorithm", "FedAdam", "--momentum", "0.5"], ["momentum = 0.5 must be left out: none of FedAdam has it"]),
        (["--algorithm", "FedAdam", "--adaptivity", "cosine(0.1)"], ["adaptivity = ", "must be a number"]),
        (["--algorithm", "FAFED(base=FCSG)"], ["FAFED can't wrap FCSG, which does not share u"]),
        (["--algorithm", "FedProx(base=Fed-GLOMO)"], ["FedProx can't wrap FedGLOMO"]),
        (["--algorithm", "FedAdam(base=CODA+)"], ["CODA+ can't be used with InvariantLogistic"]),
        (
            ["--algorithm", "FedAdam(base=SCAFFOLD)", "--engine", "compiled"],
            ["FedAdam with these settings are not all"],
        ),
    ],
)
def test_a_wrong_method_inside_another_is_refused(options, says):
    assert_refused(*run_with(*options), says=says)


def sweep_with(*options):
    return ["sweep", *QUADRATIC, "--tuning-seeds", "[7]", *options]


GRID = ["--grid", "learning_rate=0.1,0.01"]

MISTAKES = {
    # commands and names
    "command": (["runn"], ["command 'runn'", "did you mean run?"]),
    "command, far off": (["walk"], ["command 'walk'", "known: adapt, check, check-site, compare"]),
    "no command but an option": (["--rounds", "3"], ["command '--rounds'", "known:"]),
    "option": (
        run_with("--noize", "1"),
        ["option --noize", "did you mean --noise?", "fedcso run invariant_logistic --help"],
    ),
    "option with a dash": (run_with("--inner-bach", "1"), ["option --inner-bach", "did you mean --inner-batch "]),
    "option of another problem": (run_with("--alpha", "1"), ["option --alpha"]),
    "abbreviated option": (run_with("--round", "1"), ["option --round", "did you mean --rounds?"]),
    "algorithm": (run_with("--algorithm", "FCGS"), ["algorithm 'FCGS'", "did you mean FCSG"]),
    "one of several algorithms": (run_with("--algorithm", "FCSG", "Scafold"), ["'Scafold'", "SCAFFOLD"]),
    "algorithm twice": (run_with("--algorithm", "FCSG", "FCSG"), ["algorithm = 'FCSG'", "given once"]),
    "no algorithm in a file": (["run", "--config", "no_methods.yaml"], ["algorithm = []", "at least one method"]),
    "no algorithm": (run_with("--algorithm"), ["--algorithm", "without a value"]),
    "problem": (["run", "invariant_logistik"], ["problem 'invariant_logistik'", "did you mean invariant_logistic"]),
    "no problem": (["run"], ["problem is missing", "fedcso run invariant_logistic", "fedcso list"]),
    "no problem but options": (["run", "--rounds", "3"], ["problem is missing"]),
    "no problem to sweep": (["sweep", *GRID], ["problem is missing", "fedcso sweep invariant_logistic"]),
    "engine": (run_with("--engine", "warp"), ["engine = 'warp' must be one of", "stacked", "threads"]),
    "estimator": (
        run_with("--estimator", "plane"),
        ["unknown estimator 'plane'; did you mean plain?", "path.py:name", "mean_outside"],
    ),
    "tracker": (run_with("--track", "paper"), ["track = 'paper' must be one of", "tensorboard"]),
    "weights": (run_with("--weights", "heavy"), ["weights = 'heavy' must be one of 'uniform', 'size'"]),
    "on_nonfinite": (run_with("--on-nonfinite", "cry"), ["on_nonfinite = 'cry' must be one of 'stop', 'drop'"]),
    "device": (run_with("--device", "toaster"), ["device", "toaster"]),
    # schedules and hyper-parameters
    "schedule": (run_with("--learning-rate", "cosin(0.1, 5)"), ["schedule 'cosin'", "did you mean cosine?"]),
    "schedule without its start": (
        run_with("--learning-rate", "cosine()"),
        ["learning_rate", "cosine()", "start"],
    ),
    "schedule of a word": (run_with("--learning-rate", "cosine(x, 3)"), ["learning_rate", "cosine(x, 3)"]),
    "schedule out of range": (run_with("--learning-rate", "cosine(-1, 3)"), ["learning_rate", "start", "above 0"]),
    "learning rate that is a word": (run_with("--learning-rate", "high"), ["learning_rate = 'high'", "a number, or"]),
    "learning rate below 0": (run_with("--learning-rate", "-1"), ["learning_rate = -1", "above 0"]),
    "learning rate 0": (run_with("--learning-rate", "0"), ["learning_rate = 0", "above 0"]),
    "learning rate without end": (run_with("--learning-rate", "1e999"), ["learning_rate = inf", "above 0"]),
    "learning rate that is a list": (run_with("--learning-rate", "[1, 2]"), ["learning_rate = [1, 2]"]),
    "learning rate that is a strange dict": (run_with("--learning-rate", "{[]: 1}"), ["learning_rate"]),
    "empty learning rate": (run_with("--learning-rate", ""), ["learning_rate = ''", "a number, or"]),
    "momentum above 1": (run_with("--algorithm", "FCSG-M(momentum=2)"), ["momentum = 2", "in (0, 1]"]),
    "momentum for none": (run_with("--algorithm", "FCSG", "--momentum", "0.5"), ["momentum = 0.5", "none of FCSG"]),
    "option of an algorithm": (run_with("--algorithm", "FCSG-M(mementum=2)"), ["'mementum'", "did you mean momentum?"]),
    "setting without a name": (run_with("--algorithm", "FCSG-M(0.5)"), ["FCSG-M(0.5)", "NAME(option=value"]),
    "open bracket": (run_with("--algorithm", "FCSG-M(momentum=0.5"), ["FCSG-M(momentum=0.5", "NAME(option=value"]),
    # types and ranges
    "rounds 0": (run_with("--rounds", "0"), ["rounds = 0", "at least 1"]),
    "rounds in words": (run_with("--rounds", "many"), ["rounds = 'many' must be a whole number"]),
    "half a round": (run_with("--rounds", "1.5"), ["rounds = 1.5 must be a whole number"]),
    "rounds without a number": (run_with("--rounds"), ["--rounds", "without a value"]),
    "local steps below 0": (run_with("--local-steps", "-1"), ["local_steps = -1", "at least 1"]),
    "initial batch 0": (run_with("--initial-batch", "0"), ["initial_batch = 0", "at least 1"]),
    "participation 0": (run_with("--participation", "0.0"), ["participation = 0.0", "a fraction in (0, 1]"]),
    "participation above 1": (run_with("--participation", "1.5"), ["participation = 1.5", "a fraction in (0, 1]"]),
    "participation in words": (run_with("--participation", "most"), ["participation = 'most' must be a number"]),
    "more participants than clients": (run_with("--participation", "4"), ["participation = 4", "at most 3"]),
    "clients 0": (run_with("--clients", "0"), ["clients = 0", "at least 1"]),
    "noise below 0": (run_with("--noise", "-1"), ["noise = -1", "above 0"]),
    "noise in words": (run_with("--noise", "loud"), ["noise = 'loud' must be a number"]),
    "a flag in words": (run_with("--draw-mean", "maybe"), ["draw_mean = 'maybe' must be true or false"]),
    "test points below 0": (run_with("--test-points", "-5"), ["test_points = -5"]),
    "test points 0": (run_with("--test-points", "0"), ["test_points = 0"]),
    "seeds 0": (run_with("--seeds", "0"), ["seeds = 0", "a number of seeds"]),
    "seeds below 0": (run_with("--seeds=-1"), ["seeds = -1", "a number of seeds"]),
    "seeds in words": (run_with("--seeds", "some"), ["seeds = 'some'", "a number of seeds"]),
    "a seed twice": (run_with("--seeds", "1,1"), ["seeds = [1, 1]", "different seeds"]),
    "checkpoint rounds below 0": (run_with("--checkpoint-rounds", "-1"), ["checkpoint_rounds = -1"]),
    "checkpoint seconds below 0": (run_with("--checkpoint-seconds", "-1"), ["checkpoint_seconds = -1"]),
    "a name that is a path": (run_with("--name", "a/b"), ["name", "a/b"]),
    "data set": (["run", "classification", "--data", "digitz"], ["dataset 'digitz'", "did you mean digits?"]),
    "alpha below 0": (["run", "classification", "--alpha", "-1"], ["alpha = -1", "at least 0"]),
    "too many clients": (["run", "classification", "--clients", "5000"], ["clients = 5000", "at most 1257"]),
    "no clients": (["run", "classification", "--clients", "0"], ["clients = 0", "at least 1"]),
    "hidden below 0": (["run", "classification", "--hidden", "-1"], ["hidden = -1", "at least 0"]),
    # methods of one machine
    "BSGD with many clients": (
        ["run", "invariant_logistic", "--algorithm", "BSGD"],
        ["clients = 16", "1 for BSGD", "pool the data"],
    ),
    "BSGD with local steps": (
        run_with("--algorithm", "BSGD", "--clients", "1"),
        ["local_steps = 2", "1 for BSGD"],
    ),
    # files
    "no file": (["run", "--config", "missing.yaml"], ["config", "missing.yaml"]),
    "no file, problem first": (["run", "nested_quadratic", "--config", "missing.yaml"], ["config", "missing.yaml"]),
    "no file named": (["run", "--config"], ["--config", "without a value", "YAML file"]),
    "a folder for a file": (["run", "--config", "."], ["config", "directory"]),
    "a list for settings": (["run", "--config", "list.yaml"], ["config", "list.yaml"]),
    "a list, problem first": (["run", "nested_quadratic", "--config", "list.yaml"], ["config", "list.yaml"]),
    "broken YAML": (["run", "--config", "broken.yaml"], ["config", "broken.yaml", "line 2"]),
    "broken YAML, problem first": (["run", "nested_quadratic", "--config", "broken.yaml"], ["config", "broken.yaml"]),
    "unknown key": (["run", "--config", "unknown_key.yaml"], ["'noize'", "did you mean noise"]),
    "wrong type in a file": (["run", "--config", "wrong_type.yaml"], ["rounds = 'many' must be a whole number"]),
    "wrong value in a file": (["run", "--config", "wrong_value.yaml"], ["rounds = 0", "at least 1"]),
    "no problem in a file": (["run", "--config", "no_problem.yaml"], ["no_problem.yaml", "problem: NAME"]),
    "a number for a problem": (["run", "--config", "number_for_problem.yaml"], ["number_for_problem.yaml", "problem"]),
    # one's own problem
    "no such problem file": (["run", "missing.py:task"], ["no file missing.py"]),
    "a file that raises": (["run", "raises.py:task"], ["raises.py, line 3, raised RuntimeError: no data here"]),
    "a file that is no Python": (["run", "syntax.py:task"], ["syntax.py", "SyntaxError", "line 1"]),
    "a name that is not in the file": (["run", "own.py:task"], ["'task'", "own.py", "known:", "raises"]),
    "a file without a name": (["run", "own.py"], ["'own.py'", "path.py:name"]),
    "a function that raises": (["run", "own.py:raises"], ["own.py", "line 2", "RuntimeError: no data here"]),
    "a function that makes no task": (["run", "own.py:wrong"], ["problem", "int", "a fedcso.Task"]),
    "something that is no function": (["run", "own.py:number"], ["own.py:number", "a fedcso.Task"]),
    "an option that is taken": (
        ["run", "own.py:clashes"],
        ["'rounds' of own.py:clashes is also an option", "rename it"],
    ),
    "an option that diagnose has": (["diagnose", "own.py:clashes_elsewhere"], ["'samples'", "is also an option"]),
    "an option that theory has": (["theory", "own.py:clashes_elsewhere"], ["'samples'", "is also an option"]),
    "an option that is taken, passed on": (["run", "own.py:passes"], ["own.py:passes", "'rounds'", "already exists"]),
    "an argument without a type": (["run", "own.py:untyped"], ["'size' of own.py:untyped has no type", "`size: int`"]),
    "an argument that must be given": (["run", "own.py:needs"], ["size is missing", "fedcso run own.py:needs --help"]),
    "no such module": (["run", "no_such_module:task"], ["module 'no_such_module' can't be imported"]),
    "no module": (["run", ":task"], ["':task'"]),
    # sweeps
    "nothing to try": (sweep_with(), ["--grid NAME=VALUE,VALUE", "--search NAME=LOW:HIGH"]),
    "grid and search": (sweep_with(*GRID, "--search", "learning_rate=0.1:0.2"), ["--grid", "--search"]),
    "grid of an unknown name": (
        sweep_with("--grid", "learning_rat=1,2"),
        ["'learning_rat'", "did you mean learning_rate"],
    ),
    "grid without values": (sweep_with("--grid", "learning_rate"), ["learning_rate", "NAME=VALUE,VALUE"]),
    "grid with no values": (sweep_with("--grid", "learning_rate="), ["learning_rate = ''", "separated by commas"]),
    "grid of words": (sweep_with("--grid", "learning_rate=low,high"), ["learning_rate = 'low'", "a number, or"]),
    "grid of brackets": (sweep_with("--grid", "learning_rate=1],[2"), ["learning_rate", "1],[2"]),
    "grid out of range": (sweep_with("--grid", "learning_rate=-1,0.1"), ["learning_rate = -1", "above 0"]),
    "grid that no method has": (sweep_with("--grid", "tracking=0.1,0.2"), ["tracking", "FCSG, FCSG-M, Acc-FCSG-M"]),
    "grid for a method of one machine": (sweep_with(*GRID, "--algorithm", "BSGD"), ["clients = 3", "1 for BSGD"]),
    "metric": (sweep_with(*GRID, "--metric", "los"), ["metric 'los'", "did you mean loss"]),
    "tuning seeds in words": (sweep_with(*GRID, "--tuning-seeds", "some"), ["tuning_seeds", "some"]),
    "no tuning seeds": (sweep_with(*GRID, "--tuning-seeds", "[]"), ["tuning_seeds", "[]"]),
    "range without an end": (sweep_with("--search", "learning_rate=0.1"), ["learning_rate=0.1", "LOW:HIGH"]),
    "range upside down": (sweep_with("--search", "learning_rate=1:0.1"), ["learning_rate=1:0.1", "LOW < HIGH"]),
    "range of words": (sweep_with("--search", "learning_rate=a:b"), ["learning_rate=a:b", "LOW:HIGH"]),
    "range without bounds": (sweep_with("--search", "learning_rate=0.1:inf"), ["learning_rate=0.1:inf"]),
    "range of an unknown name": (sweep_with("--search", "learning_rat=0.1:0.2"), ["learning_rat"]),
    "range that goes too far": (
        sweep_with("--algorithm", "FCSG-M", "--search", "momentum=0.1:5"),
        ["momentum", "in (0, 1]"],
    ),
    "no trials": (sweep_with("--search", "learning_rate=0.1:0.2", "--trials", "0"), ["trials = 0", "at least 1"]),
    "trials in words": (
        sweep_with("--search", "learning_rate=0.1:0.2", "--trials", "few"),
        ["trials = 'few' must be a whole number"],
    ),
    # the other commands
    "resume nothing": (["resume"], ["folder is missing", "fedcso resume --help"]),
    "resume nowhere": (["resume", "nowhere"], ["nowhere is not a run folder"]),
    "resume two": (["resume", "a", "b"], ["unexpected argument 'b'"]),
    "report nothing": (["report"], ["folder is missing"]),
    "report nowhere": (["report", "nowhere"], ["nowhere is not a run folder"]),
    "report with an option": (["report", "nowhere", "--fast"], ["option --fast"]),
    "compare nothing": (["compare"], ["folder is missing"]),
    "compare nowhere": (["compare", "nowhere"], ["nowhere is not a run folder"]),
    "reproduce nothing": (["reproduce"], ["experiment is missing"]),
    "reproduce something else": (["reproduce", "figure9"], ["experiment 'figure9'", "did you mean figure"]),
    "reproduce with an option": (["reproduce", "figure1", "--quik"], ["option --quik", "did you mean --quick?"]),
    "list something else": (["list", "algorithmz"], ["list 'algorithmz'", "did you mean algorithms"]),
    "no data set": (["data", "check"], ["name is missing"]),
    "no action and no data set": (["data"], ["action and name are missing"]),
    "another data set": (["data", "check", "digitz"], ["dataset 'digitz'", "did you mean digits?"]),
    "do something else with data": (["data", "steal", "digits"], ["action 'steal'", "check, get"]),
    "tell the doctor something": (["doctor", "please"], ["unexpected argument 'please'"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line_and_leaves_no_folder(place, mistake):
    arguments, says = MISTAKES[mistake]
    assert_refused(*arguments, says=says)
    assert folders(place / "runs") == []


def test_an_algorithm_is_not_lost_where_the_option_is_given_twice():
    outcome = call(*run_with("--algorithm", "FCSG", "--algorithm", "SCAFFOLD"))
    assert outcome.code == BAD_INPUT or {"FCSG", "SCAFFOLD"} <= set(outcome.out.split())


def test_two_names_for_the_problem_are_refused_unless_they_agree():
    assert_refused(*run_with("--problem", "nested_quadratic"), says=["problem", "nested_quadratic"])


@pytest.mark.parametrize("tracker", ["tensorboard", "mlflow", "wandb"])
def test_a_tracker_that_is_not_installed_is_told_before_anything_is_made(place, monkeypatch, tracker):
    module = "torch.utils.tensorboard" if tracker == "tensorboard" else tracker
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    assert tracker in tracking.TRACKERS
    assert_refused(*run_with("--track", tracker), says=[f"'{tracker}'", "pip install 'fedcso[track]'"])
    assert folders(place / "runs") == []


def test_a_search_without_optuna_says_what_to_install(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert_refused(*sweep_with("--search", "learning_rate=0.1:0.2"), says=["Optuna", "pip install 'fedcso[sweep]'"])
    assert folders(place / "runs") == []


def test_a_sweep_of_a_problem_without_validation_data_is_refused_at_once(place):
    (place / "blind.py").write_text(
        "import torch\nfrom fedcso import Task\nfrom fedcso.problems import NestedQuadratic\n\n"
        "class Blind(NestedQuadratic):\n    exact = None\n\n"
        "task = Task(Blind(1), [torch.ones(1, dtype=torch.float64)])\n"
    )
    small = ["--rounds", "1", "--seeds", "1", "--tuning-seeds", "[7]"]
    assert_refused("sweep", "blind.py:task", *small, *GRID, says=["blind.py:task", "validation data"])
    assert folders(place / "runs") == []


@pytest.fixture
def folder(place):
    return run("run", *QUADRATIC, out=place / "runs")


COMPARISONS = {
    "metric": (["--metric", "los"], ["metric 'los'", "did you mean loss?"]),
    "metric that is a word": (["--metric", "algorithm"], ["metric 'algorithm'"]),
    "baseline": (["--baseline", "FCGS"], ["baseline 'FCGS'", "did you mean FCSG"]),
    "option": (["--matric", "loss"], ["option --matric", "did you mean --metric?"]),
}


@pytest.mark.parametrize("mistake", COMPARISONS)
def test_a_mistake_in_a_comparison_is_told_in_one_line(folder, mistake):
    arguments, says = COMPARISONS[mistake]
    assert_refused("compare", folder, *arguments, says=says)


def test_a_folder_without_results_is_told_how_to_get_them(folder):
    (folder / "metrics.csv").unlink()
    for command in ("report", "compare"):
        assert_refused(command, folder, says=[f"{folder} has no results yet", f"fedcso resume {folder}"])


def test_metrics_that_are_none_are_refused(folder):
    (folder / "metrics.csv").write_text("a,b\n1,2\n")
    assert_refused("report", folder, says=["metrics.csv is not a table of metrics"])


CONFIGURATIONS = {
    "no command": (
        {"problem": "nested_quadratic"},
        ["resume"],
        ["command = None must be one of tour, fit, run, sweep"],
    ),
    "another command": ({"command": "list"}, ["resume"], ["command = 'list' must be one of tour, fit, run, sweep"]),
    "no problem": ({"command": "run"}, ["resume", "report", "diagnose", "decide"], ["add a line `problem: NAME`"]),
    "a reproduction": ({"command": "reproduce"}, ["report", "diagnose", "decide"], ["is a reproduction, not a run"]),
}


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_a_folder_of_another_kind_is_refused(folder, case):
    settings, commands, says = CONFIGURATIONS[case]
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    for command in commands:
        assert_refused(command, folder, says=says)


def test_a_missing_file_is_named(folder):
    (folder / "env.json").unlink()
    outcome = call("compare", folder)
    assert outcome.code in (BROKE_OFF, BAD_INPUT)
    assert str(folder / "env.json") in outcome.err
    assert "Errno" not in outcome.err


def test_a_place_that_cannot_be_written_is_told_in_one_line(place):
    (place / "taken").write_text("a file")
    outcome = call(*run_with("--out", "taken"))
    assert outcome.code in (BROKE_OFF, BAD_INPUT)
    assert outcome.err.count("\n") == 1
    assert "taken" in outcome.err
