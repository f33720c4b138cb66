"""Compute what the theorems prescribe, for given or estimated constants."""

from typing import Any

from fedcso.cli.commands.theory import OPTIONS
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


def prescribe_settings(problem: str | None, values: dict[str, Any], usual: dict[str, Any]) -> None:
    """Print the constants, Table 1 with numbers, and the commands that run the prescribed settings.

    `values` are those of the options, `usual` their defaults.
    """
    require_count("samples", values["samples"])
    if values["radius"] is not None:
        require_positive("radius", values["radius"])
    task = _task(problem, values) if problem else None
    clients = len(task.able) if task else values["clients"]
    found = _constants(task, values)
    settings = [_prescribed(method, found.constants, clients, values) for method in THEOREMS]
    show(_constants_table(found), title="constants" + (f" of {problem}" if problem else ""))
    show([_row(setting, found.constants) for setting in settings], title="Table 1 with numbers")
    print("samples: inner samples of one client; ε: square root of the bound; BSGD and BSpiderBoost run on one machine")
    if problem:
        own = _options_of(problem, values)
        chosen = "".join(
            f" --{name} {value}" for name, value in own.items() if value != usual[name] and name != "clients"
        )
        for setting in settings:
            print(_command(problem + chosen, setting) + (f" --clients {setting.clients}" if "clients" in own else ""))


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
    found = find_constants(task.problem, x, task.seen, *how)
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
