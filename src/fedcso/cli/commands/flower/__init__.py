"""usage: fedcso flower init|keys|up|run|down|site …   (each has --help)

Real sites: the same run where the data can't come to one machine, over Flower (pip install 'fedcso[flower]').

examples:
  fedcso flower init trial --problem auprc --algorithm FCSG-M --sites 3
  fedcso flower up trial                   certificates, keys, a SuperLink and three sites, in the background
  fedcso flower run trial                  a run over them; its folder is in trial/runs
  fedcso flower down trial                 stops just those processes
These are a trial on this machine. In earnest, trial/README.md is for the coordinator and trial/SITE.md for a site:
  fedcso check-site my.csv --label y       what would leave the site
  fedcso flower site --superlink HOST:PORT --ca ca.crt --key KEY --name NAME --data my.csv --label y
"""

import importlib

from fedcso.core.errors import UnknownName
from fedcso.federation import require_flower
from fedcso.runs.folder import RunFolder

HELP = "real sites over Flower: init, keys, up, run, down, site"

ACTIONS = ("init", "keys", "up", "run", "down", "site")


def main(arguments: list[str]) -> int:
    """Hand on to the action."""
    if not arguments or arguments[0] in ("--help", "-h"):
        print(__doc__)
        return 0
    if arguments[0] not in ACTIONS:
        raise UnknownName("action", arguments[0], ACTIONS)
    require_flower()
    return int(importlib.import_module(f"fedcso.cli.commands.flower.{arguments[0]}").main(arguments[1:]))


def resume(folder: RunFolder) -> int:
    """Go on with a run over real sites."""
    require_flower()
    return int(importlib.import_module("fedcso.cli.commands.flower.run").resume(folder))
