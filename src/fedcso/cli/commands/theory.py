"""Compute what the paper's theorems prescribe for an accuracy: settings, samples and rounds.

Name a problem, whose constants are known or estimated from samples, or give all six constants; constants that are given
replace those of the problem. The result is Table 1 of the paper with numbers. The bounds hold for the worst problem
with these constants; yours needs less. `fedcso reproduce table1` measures how much less, `fedcso diagnose` the bias.

examples:
  fedcso theory invariant_logistic --epsilon 0.1
  fedcso theory nested_quadratic --epsilon 0.5 --clients 64
  fedcso theory invariant_logistic --steps 5000 --noise 2
  fedcso theory --epsilon 0.1 --clients 16 --S-f 0.25 --L-f 1 --S-g 0 --L-g 2 --sigma-g 1 --gap 1
"""

from typing import Any

from fedcso.cli.options import add_problem_options
from fedcso.cli.parser import Parser, simple_parser
from fedcso.core.constants import SYMBOLS, Constants
from fedcso.core.errors import FedcsoError, require_count, require_positive
from fedcso.core.streams import START, stream
from fedcso.core.task import Task
from fedcso.reports.tables import Estimate
from fedcso.reports.terminal import show
from fedcso.runs.config import option_names
from fedcso.runs.specs import make_task, spell, task_maker
from fedcso.theory.estimate import Estimated, find_constants
from fedcso.theory.prescribe import SINGLE_MACHINE, THEOREMS, Setting, bound, build_algorithm, prescribe

OPTIONS = {
    "S_f": ("outer_smoothness", "smoothness of f"),
    "L_f": ("outer_slope", "largest slope of f"),
    "S_g": ("inner_smoothness", "smoothness of g"),
    "L_g": ("inner_slope", "largest slope of g"),
    "sigma_g": ("inner_noise", "standard deviation of g over the inner samples"),
    "gap": ("gap", "F(x_0) − F*"),
}


def main(arguments: list[str]) -> int:
    """Print the constants, Table 1 with numbers, and the commands that run the prescribed settings."""
    problem = arguments[0] if arguments and not arguments[0].startswith("-") else None
    parser = simple_parser("theory", str(__doc__))
    parser.usage = "fedcso theory [PROBLEM] [options]"
    _add_options(parser)
    if problem:
        parser.prog = f"fedcso theory {problem}"
        add_problem_options(parser, task_maker(problem), problem)
    else:
        parser.add_argument("--clients", type=int, default=16, help="N, the number of clients")
    values = parser.parse_args(arguments[1:] if problem else arguments).as_dict()
    require_count("samples", values["samples"])
    if values["radius"] is not None:
        require_positive("radius", values["radius"])
    task = _task(problem, values) if problem else None
    clients = sum(task.problem.trains(data) for data in task.clients) if task else values["clients"]
    found = _constants(task, values)
    settings = [_prescribed(method, found.constants, clients, values) for method in THEOREMS]
    show(_constants_table(found), title="constants" + (f" of {problem}" if problem else ""))
    show([_row(setting, found.constants) for setting in settings], title="Table 1 with numbers")
    print("samples: inner samples of one client; ε: square root of the bound; BSGD and BSpiderBoost run on one machine")
    if problem:
        own = _options_of(problem, values)
        usual = parser.get_defaults().as_dict()
        chosen = "".join(
            f" --{name} {value}" for name, value in own.items() if value != usual[name] and name != "clients"
        )
        for setting in settings:
            print(_command(problem + chosen, setting) + (f" --clients {setting.clients}" if "clients" in own else ""))
    return 0


def _add_options(parser: Parser) -> None:
    group = parser.add_argument_group("the aim")
    group.add_argument("--epsilon", type=float, help="ε: the mean of ‖∇F‖ to reach")
    group.add_argument("--steps", type=int, help="T: the number of steps to take, instead of ε")
    group.add_argument(
        "--outer_batch", type=int, default=1, help="b, outer samples per step (BSpiderBoost prescribes its own)"
    )
    group = parser.add_argument_group("constants, instead of those of the problem")
    for option, (_, meaning) in OPTIONS.items():
        group.add_argument(f"--{option}", type=float, metavar="NUMBER", help=meaning)
    group = parser.add_argument_group("estimating the constants of a problem")
    group.add_argument("--radius", type=float, help="radius of the ball in which the iterates stay")
    group.add_argument(
        "--lowest", type=float, default=0.0, help="F*, or a lower bound of it, if the problem does not know it"
    )
    group.add_argument("--samples", type=int, default=100, help="outer samples of an estimate")
    group.add_argument("--seed", type=int, default=0, help="seed of x_0 and of the samples")


def _options_of(problem: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the options that belong to the problem."""
    names = option_names(problem)
    return {name: value for name, value in values.items() if name in names}


def _task(problem: str, values: dict[str, Any]) -> Task:
    return make_task(task_maker(problem), _options_of(problem, values), problem)


def _constants(task: Task | None, values: dict[str, Any]) -> Estimated:
    """Return the constants of the problem, replaced by those that were given."""
    given = {name: values[option] for option, (name, _) in OPTIONS.items() if values[option] is not None}
    exact = dict.fromkeys(given, 0.0)
    if len(given) == len(OPTIONS):
        return Estimated(Constants(**given), exact)
    if task is None:
        missing = [f"--{option.replace('_', '-')}" for option, (name, _) in OPTIONS.items() if name not in given]
        raise FedcsoError(f"constants are missing: name a problem, or give {', '.join(missing)}")
    x = task.starting_point(stream(values["seed"], START, 0))
    how = values["radius"], values["lowest"], values["samples"], values["seed"]
    found = find_constants(task.problem, x, task.clients, *how)
    known = {name: getattr(found.constants, name) for name in SYMBOLS}
    return Estimated(Constants(**known | given), found.half_widths | exact)


def _constants_table(found: Estimated) -> list[dict[str, Any]]:
    constants, widths = found
    table = [
        {
            "": SYMBOLS[name],
            "value": Estimate(getattr(constants, name), widths[name] or float("nan")),
            "known": "from samples" if widths[name] else "exactly",
            "meaning": meaning,
        }
        for name, meaning in OPTIONS.values()
    ]
    derived = {
        "S_F": (constants.smoothness, "smoothness of F: S_g L_f + S_f L_g²"),
        "L_f²L_g²": (constants.variance, "bound on the variance of ∇F̂"),
        "L_g²S_f²σ_g²": (constants.bias, "bound on m times the squared bias of ∇F̂"),
    }
    for symbol, (value, meaning) in derived.items():
        table.append({"": symbol, "value": Estimate(value, float("nan")), "known": "follows", "meaning": meaning})
    return table


def _prescribed(method: str, constants: Constants, clients: int, values: dict[str, Any]) -> Setting:
    clients = 1 if method in SINGLE_MACHINE else clients
    wanted = {name: values[name] for name in ("epsilon", "steps", "outer_batch")}
    return prescribe(method, constants, clients, **wanted)


def _row(setting: Setting, constants: Constants) -> dict[str, Any]:
    samples, rounds = THEOREMS[setting.method].exponents
    return {
        "method": setting.method,
        "N": setting.clients,
        "α": f"{setting.learning_rate:.3g}",
        "β": "–" if setting.momentum == 1 else f"{setting.momentum:.3g}",
        "q": setting.local_steps,
        "b": setting.outer_batch,
        "B": setting.initial_batch,
        "m": setting.inner_batch,
        "T": setting.steps,
        "rounds": "–" if setting.method in SINGLE_MACHINE else setting.rounds,
        "samples": setting.samples,
        "ε": f"{sum(bound(setting, constants).values()) ** 0.5:.3g}",
        "proven": f"samples ε^−{samples}, {'steps' if setting.method in SINGLE_MACHINE else 'rounds'} ε^−{rounds}",
    }


def _command(problem: str, setting: Setting) -> str:
    """Return the command that runs a setting."""
    options = ", ".join(f"{name}={spell(value)}" for name, value in vars(build_algorithm(setting)).items())
    sizes = (
        f"--rounds {setting.rounds} --local-steps {setting.local_steps} --outer-batch {setting.outer_batch} "
        f"--inner-batch {setting.inner_batch} --initial-batch {setting.initial_batch}"
    )
    return f"fedcso run {problem} --algorithm '{setting.method}({options})' {sizes}"
