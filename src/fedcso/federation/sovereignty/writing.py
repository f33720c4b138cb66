"""Write a site's policy: closed, but sufficient for the settings of one federation. People edit it afterwards."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError
from fedcso.federation.sovereignty.policy import ANY, FILE, LIMITED, MESSAGES, Policy
from fedcso.federation.sovereignty.secure_rules import SecureRules

DAYS = 180
"""How long a policy is valid when it is written."""

TEMPLATE = """\
# What this site allows. It is read before every message; what is not allowed here is refused.
# The coordinator is told "refused by policy" and nothing more; the site's log says why.

# The last day on which anything is allowed.
expires = {expires}

# No smaller number of rows leaves the site in any description, except 0.
smallest_count = {smallest_count}

# The messages that are answered. describe: sizes, and for tables counts and means of columns; train: updates of the
# model; evaluate: metrics of a model on held-out rows; count: held-out rows by the model's score, for thresholds.
messages = {messages}

problems = {problems}

# A name allows all settings of the method. A method around another must be written in full.
algorithms = {algorithms}

# The longest run, and the fewest samples behind an update (local_steps times outer_batch).
max_rounds = {max_rounds}
max_local_steps = {max_local_steps}
min_samples = {min_samples}

# The tables that may be read (paths, or names of built-in data), and the columns to learn from ("any" for all).
tables = {tables}
columns = {columns}

# What is done to an update before it leaves. clip is the largest norm of the change of the model; noise is the standard
# deviation of Gaussian noise in units of clip; 0 for neither. gaussian = "local": this site's noise protects each of
# its updates; "distributed": this site adds its part of the noise of as many sites as `sites` says, which protects
# their sum only. If max_epsilon is above 0, updates that would exceed it (in all runs together, at delta) are refused.
[update]
clip = 0.0
noise = 0.0
gaussian = "local"
sites = 1
delta = 1e-5
max_epsilon = 0.0

# Secure aggregation: the coordinator learns the sum over several sites, and no single update. If required, an update
# leaves in such a sum only. least_sites is the fewest sites in a sum. The public keys of the other sites must be in the
# folder `peers` beside this file.
[secure_aggregation]
required = {secure}
least_sites = {least_sites}

# All other settings of a run. What is not named here is refused. "any" allows every value; a list its values;
# {{ least = 0, most = 1 }} numbers in between.
[options]
{options}
"""


def policy_text(settings: Mapping[str, Any], tables: Sequence[str] = (), columns: Sequence[str] = ()) -> str:
    """Return a policy that allows a run with these settings; without settings it allows nothing.

    Of texts and truth values the given ones are allowed. Numbers are not fixed, except for the length of the run.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    methods = given.get("algorithm", [])
    built_in = [str(given["data"])] if "data" in given and not tables else []
    values = {
        "expires": date.today() + timedelta(DAYS),
        "smallest_count": Policy.smallest_count,
        "messages": _toml(list(MESSAGES) if given else []),
        "problems": _toml([given["problem"]] if given else []),
        "algorithms": _toml(methods if isinstance(methods, list) else [methods]),
        "max_rounds": given.get("rounds", 0),
        "max_local_steps": given.get("local_steps", 0),
        "min_samples": min(Policy.min_samples, given.get("local_steps", 10) * given.get("outer_batch", 1)),
        "tables": _toml([*tables, *built_in]),
        "columns": _toml(list(columns) or ANY),
        "secure": _toml(bool(given.get("secure_aggregation"))),
        "least_sites": SecureRules.least_sites,
        "options": "\n".join(f"{_key(name)} = {_rule(given[name])}" for name in sorted(given) if name not in LIMITED),
    }
    return TEMPLATE.format(**values)


def write_policy(folder: Path, text: str) -> Path:
    """Write a policy to a site's folder; raise if there is one already."""
    path = folder / FILE
    if path.exists():
        raise FedcsoError(f"{path} already exists; edit it, or remove it first")
    folder.mkdir(parents=True, exist_ok=True)
    atomic.write(path, text)
    return path


def _rule(value: Any) -> str:
    return _toml([value] if isinstance(value, str | bool) else ANY)


def _toml(value: Any) -> str:
    """Return a text, a truth value or a list of these in TOML, which writes them as JSON does."""
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else _toml(name)
