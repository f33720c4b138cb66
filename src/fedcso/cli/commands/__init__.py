"""The commands of `fedcso`, one per file, and the table of all of them.

A command has `main(arguments)`, which returns the exit code. A command whose run folders can be resumed has
`resume(folder)`; a command that several processes can share has `follow()`.

A command's file imports what its help needs, and nothing that imports torch or pandas; what it does is imported when it
does it, from below. Commands that are functions in Python too (`fedcso.run`, …) print what these return; a few have
their work in the file of the same name in `cli/work`.
"""

import importlib
from types import ModuleType

from fedcso.core.errors import UnknownName

COMMANDS = {
    "tour": "show in a minute what this is for: a bias and its remedy, rare positives at several sites",
    "fit": "find the best model for rare positives in tables at several sites",
    "run": "run one or several methods on a problem, for several seeds",
    "resume": "resume a run that was interrupted or killed",
    "report": "redraw the figures, tables and report of run folders",
    "compare": "compare runs: means with intervals, paired differences",
    "decide": "choose thresholds for a ranking model, with calibration and intervals",
    "predict": "score new rows with an exported model",
    "adapt": "adapt a few-shot model to new classes of images, and classify others",
    "sweep": "choose hyper-parameters on validation data, by a grid or a search",
    "reproduce": "reproduce the paper's figures and tables and check its statements",
    "theory": "compute what the theorems prescribe for an accuracy",
    "diagnose": "measure bias and noise: is the inner batch large enough?",
    "check": "check your own problem, method or estimator",
    "flower": "run over real sites with Flower: init, keys, up, run, down, site, approve, audit",
    "check-site": "show what would leave a site that joins a federation",
    "list": "list problems, algorithms, datasets, experiments, engines, estimators, schedules",
    "data": "download a dataset, or check that it is complete",
    "completion": "print a script with which the shell completes commands, options and names",
    "doctor": "show versions, threads, device and the datasets found",
}
"""All commands with their lines in the overview, in its order. To add a command, add a file and a row here."""


def load_command(name: str) -> ModuleType:
    """Import and return the module of a command; raise `UnknownName` if there is no such command."""
    if name not in COMMANDS:
        raise UnknownName("command", name, COMMANDS)
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
