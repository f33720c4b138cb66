"""Compute what the theorems prescribe, for given or estimated constants."""

from dataclasses import replace
from typing import Any

from fedcso.cli.commands.theory import OPTIONS
from fedcso.core.constants import SYMBOLS, Constants
from fedcso.core.errors import FedcsoError, require_count, require_nonnegative, require_positive
from fedcso.core.streams import START, stream
from fedcso.core.task import Task
from fedcso.estimators import ESTIMATORS
from fedcso.reports.tables import Estimate
from fedcso.reports.terminal import show
from fedcso.runs.config import option_names
from fedcso.runs.specs import make_task, spell, task_maker
from fedcso.theory.bias_terms import LEVELS, BiasTerm, any_f, known_term, samples_exponent, smooth_f
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
    estimator = values["estimator"]
    bias = _bias_term(estimator, found.constants, values["bias_constant"])
    settings = [_prescribed(method, found.constants, clients, values, bias) for method in THEOREMS] if bias else []
    others = _other_estimators(found.constants, clients, values)
    show(_constants_table(found), title="constants" + (f" of {problem}" if problem else ""))
    if bias:
        title = "Table 1 with numbers" + (f", estimator {estimator}" if estimator != "plain" else "")
        show([_row(setting, found.constants, bias) for setting in settings], title=title)
    else:
        unknown = f"C of {estimator} is not known here (--bias-constant)" if estimator in LEVELS else "it has no bound"
        print(f"only the orders below are known for {estimator}: {unknown}")
    print("samples: inner samples of one client; ε: square root of the bound; BSGD and BSpiderBoost run on one machine")
    show(others, title="for a smooth f, by estimator: ‖E∇F̂ − ∇F‖ ≤ C/mʳ")
    print("T allows for estimates that are Λ times as steep and ρ times as large (docs/theory.md); most are less so")
    if problem:
        own = _options_of(problem, values)
        chosen = "".join(
            f" --{name} {value}" for name, value in own.items() if value != usual[name] and name != "clients"
        )
        for setting in settings:
            command = _command(problem + chosen, setting) + (
                f" --clients {setting.clients}" if "clients" in own else ""
            )
            print(command + (f" --estimator {estimator}" if estimator != "plain" else ""))


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
    # The bias of the problem's own f and g says nothing about others.
    own = found.constants.smooth_bias if set(given) <= {"gap"} else {}
    return Estimated(replace(found.constants, **given, smooth_bias=own), found.half_widths | exact)


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


def _bias_term(estimator: str, constants: Constants, constant: float | None) -> BiasTerm | None:
    """Return the term of the estimator; None if its constant, or a term for it, is not known."""
    if constant is not None:
        require_nonnegative("bias_constant", constant)
        return smooth_f(estimator, constants, constant)
    if estimator == "plain":
        return any_f(constants)
    return known_term(estimator, constants)


def _prescribed(
    method: str, constants: Constants, clients: int, values: dict[str, Any], bias: BiasTerm | None = None
) -> Setting:
    clients = 1 if method in SINGLE_MACHINE else clients
    wanted = {name: values[name] for name in ("epsilon", "steps", "outer_batch")}
    return prescribe(method, constants, clients, bias=bias, **wanted)


def _other_estimators(constants: Constants, clients: int, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each estimator whose bias falls with m and each federated method."""
    table = []
    for name, estimator in ((name, ESTIMATORS[name]) for name in ESTIMATORS):
        if estimator.bias_order == 0:
            continue
        given = values["bias_constant"] if name == values["estimator"] else None
        bias = smooth_f(name, constants, given) if given is not None else known_term(name, constants)
        for method in (method for method in THEOREMS if method not in SINGLE_MACHINE):
            setting = _prescribed(method, constants, clients, values, bias) if bias else None
            exponent = samples_exponent(THEOREMS[method], method, name)
            table.append(
                {
                    "estimator": name,
                    "r": estimator.bias_order,
                    "C": f"{bias.constant:.3g}" if bias else "not known",
                    "method": method,
                    "m": setting.inner_batch if setting else "–",
                    "T": setting.steps if setting else "–",
                    "rounds": setting.rounds if setting else "–",
                    "samples": setting.samples if setting else "–",
                    "order": f"samples ε^−{exponent:.3g}" if exponent else "not shown",
                }
            )
    return table


def _row(setting: Setting, constants: Constants, bias: BiasTerm) -> dict[str, Any]:
    theorem = THEOREMS[setting.method]
    samples, rounds = theorem.samples_exponent(bias.order), theorem.exponents[1]
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
        "ε": f"{sum(bound(setting, constants, bias).values()) ** 0.5:.3g}",
        "proven": f"samples ε^−{samples:.3g}, {'steps' if setting.method in SINGLE_MACHINE else 'rounds'} ε^−{rounds}",
    }


def _command(problem: str, setting: Setting) -> str:
    """Return the command that runs a setting."""
    options = ", ".join(f"{name}={spell(value)}" for name, value in vars(build_algorithm(setting)).items())
    sizes = (
        f"--rounds {setting.rounds} --local-steps {setting.local_steps} --outer-batch {setting.outer_batch} "
        f"--inner-batch {setting.inner_batch} --initial-batch {setting.initial_batch}"
    )
    return f"fedcso run {problem} --algorithm '{setting.method}({options})' {sizes}"
