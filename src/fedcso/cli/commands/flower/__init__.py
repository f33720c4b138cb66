"""usage: fedcso flower init|keys|up|run|remove|down|site|approve|audit …   (each has --help)

Run over real sites, whose data can't be brought to one machine, with Flower (pip install 'fedcso[flower]').

actions:
  init       write a Flower app for a problem, a method and some sites
  keys       create or replace certificates and keys
  up         start a SuperLink, and sites for a trial, on this machine
  run        start a run on the SuperLink and follow it
  remove     remove a site, in the middle of a run too
  down       stop the processes that `up` started
  site       write a site's policy, and connect the site to a federation
  approve    approve the code that a site runs
  audit      show and verify the record of everything that a site has sent

examples:
  fedcso flower init trial --problem auprc --algorithm FCSG-M --sites 3
  fedcso flower up trial                   create certificates and keys, start a SuperLink and three sites
  fedcso flower run trial                  run over the sites; the run folder is in trial/runs
  fedcso flower down trial                 stop these processes
This is a trial on one machine. For real sites follow trial/README.md as the coordinator and trial/SITE.md as a site:
  fedcso check-site my.csv --label y       show what would leave the site
  fedcso flower site --init --app app --data my.csv     write the site's policy
  fedcso flower approve app                approve the code that the site will run
  fedcso flower site --superlink HOST:PORT --ca ca.crt --key KEY --name NAME --data my.csv --label y
"""

import importlib

from fedcso.core.errors import UnknownName
from fedcso.federation import require_flower
from fedcso.runs.folder import RunFolder

ACTIONS = ("init", "keys", "up", "run", "remove", "down", "site", "approve", "audit")


def main(arguments: list[str]) -> int:
    """Carry out the action that is named first."""
    if not arguments or arguments[0] in ("--help", "-h"):
        print(__doc__)
        return 0
    if arguments[0] not in ACTIONS:
        raise UnknownName("action", arguments[0], ACTIONS)
    require_flower()
    return int(importlib.import_module(f"fedcso.cli.commands.flower.{arguments[0]}").main(arguments[1:]))


def resume(folder: RunFolder) -> int:
    """Carry out what is left of a run over real sites."""
    require_flower()
    return int(importlib.import_module("fedcso.cli.commands.flower.run").resume(folder))
