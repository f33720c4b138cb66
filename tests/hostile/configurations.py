"""Configurations as nobody should write them: of runs, of federations, and policies of sites."""

from datetime import date
from math import prod

import yaml

from fedcso.cli.commands import run as run_command
from fedcso.federation.options import Federation, read_wishes, run_config
from fedcso.federation.request import Order
from fedcso.federation.sovereignty.policy import FILE, Request, read_policy, refusal
from fedcso.federation.sovereignty.writing import policy_text
from fedcso.runs.config import RunConfig
from fedcso.runs.folder import read_yaml
from fedcso.runs.options import read_options
from tests.command_line import BAD_INPUT, BROKE_OFF, FINE, call
from tests.hostile.spoiling import TEXTS, any_value, nested, spoil_bytes

RUN = {"problem": "nested_quadratic", "rounds": 1, "local_steps": 1, "seeds": 1, "clients": 2, "algorithm": ["FCSG"]}
METHODS = [
    "FCSG-M",
    "Acc-FCSG-M(momentum=0.5)",
    "FCSG(",
    "FedAdam(base=FCSG-M)",
    "FCSG(learning_rate=1e400)",
    "",
    "x" * 999,
]
NAMES = ["participation", "outer_batch", "inner_batch", "initial_batch", "learning_rate", "momentum", "clip", "weights"]
NAMES += [
    "estimator",
    "engine",
    "evaluate_every",
    "diagnose_every",
    "dimension",
    "noise",
    "weight_decay",
    "out",
    "name",
]
NAMES += ["on_nonfinite", "device", "ranks", "topology", "checkpoint_rounds", "checkpoint_seconds", "send_u", "init"]
FEDERATION = Federation(sites="3").flat() | {"command": "flower", "thresholds": {"recall": 0.8}} | RUN
SIZES = ("rounds", "local_steps", "outer_batch", "inner_batch", "dimension", "clients", "initial_batch")
MOST_WORK = 20_000
"""Runs that would draw more numbers are read, but not carried out: they are large, and not wrong. So are four of five
others, because a run takes a second."""


def spoilt_text(rng, good):
    """A YAML file."""
    text = yaml.safe_dump(good, allow_unicode=True)
    if rng.random() < 0.25:
        return spoil_bytes(rng, text.encode())
    if rng.random() < 0.1:
        return f"{text}{rng.choice([*good, 'x'])}: {nested(rng)}\n".encode()
    if rng.random() < 0.05:  # as many references as lines, each to twice the one before
        lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 25))]
        return ("\n".join(lines) + f"\n{text}").encode()
    changed = dict(good)
    for _ in range(rng.randint(1, 3)):
        name = rng.choice([*good, *NAMES, rng.choice(TEXTS)])
        changed[name] = rng.choice(METHODS) if name == "algorithm" and rng.random() < 0.7 else any_value(rng)
        if rng.random() < 0.1:
            changed.pop(name)
    return yaml.safe_dump(changed, allow_unicode=True).encode()


class OfARun:
    """`fedcso run --config FILE`."""

    title = "configurations of runs"

    def make(self, rng, place):
        (place / "config.yaml").write_bytes(spoilt_text(rng, RUN))
        self.only_read = rng.random() < 0.8

    def face(self, place):
        arguments = ["--config", str(place / "config.yaml")]
        settings = read_options("run", str(run_command.__doc__), arguments)
        config = RunConfig.from_flat(settings)
        config.built()
        sizes = [settings.get(name) for name in SIZES]
        if (
            self.only_read
            or prod(max(1, size) for size in sizes if isinstance(size, int)) * len(config.seeds) > MOST_WORK
        ):
            return
        if config.engine == "distributed" or config.device != "cpu":
            return  # processes of their own
        outcome = call("run", *arguments, "--out", place / "runs")
        assert outcome.code in (FINE, BROKE_OFF, BAD_INPUT), outcome
        assert "Traceback" not in outcome.err + outcome.out, outcome.err
        assert len(outcome.err) < 20_000, "the message is too long"


class OfAFederation:
    """The settings of an app, as the coordinator and the sites read them."""

    title = "configurations of federations"

    def make(self, rng, place):
        (place / "config.yaml").write_bytes(spoilt_text(rng, FEDERATION))

    def face(self, place):
        settings = read_yaml(place / "config.yaml", "settings")
        federation, config = Federation.from_flat(settings), run_config(settings)
        federation.check(config.plan)
        for algorithm, _ in config.built().values():
            federation.check_method(algorithm, config.plan)
        read_wishes(settings)
        Order(settings, federation.names).words()


class OfASite:
    """site.toml: whatever it holds, it is understood or refuses everything."""

    title = "policies of sites"
    good = policy_text(RUN)

    def make(self, rng, place):
        (place / FILE).write_bytes(self.spoilt(rng))

    def spoilt(self, rng):
        if rng.random() < 0.4:
            return spoil_bytes(rng, self.good.encode())
        lines = self.good.splitlines()
        for _ in range(rng.randint(1, 3)):
            place = rng.choice([n for n, line in enumerate(lines) if " = " in line])
            value = rng.choice(
                ["inf", "nan", "-1", '""', "[]", "{}", "1e400", "9" * 400, "[[1]]", "true", "2020-13-40"]
            )
            value = nested(rng) if rng.random() < 0.1 else value
            lines[place] = f"{lines[place].partition(' = ')[0]} = {value}"
        return "\n".join(lines).encode()

    def face(self, place):
        policy = read_policy(place)
        request = Request("train", RUN | {"rounds": 10**9}, {}, "FCSG", 0)
        assert refusal(policy, request, date.today())
