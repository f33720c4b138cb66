"""Choose thresholds for a ranking model and show how sure its results are.

Takes the folder of a finished run of auprc, auroc or cross_entropy. Of its methods, the one with the best validation
value is used. Calibration and thresholds come from the validation data; the test data show what they do: "of 100 alerts
about 62 are right; 81 % of the positives are found". Intervals are bootstrapped over test rows.

examples:
  fedcso decide runs/2026-01-31_120000_auprc_1a2b3c
  fedcso decide runs/2026-01-31_120000_auprc_1a2b3c --precision 0.5
  fedcso decide runs/2026-01-31_120000_auprc_1a2b3c --alerts 20 --rows 1000 --prevalence 0.01
"""

from dataclasses import fields

from fedcso.core.errors import FedcsoError
from fedcso.reports.wishes import Wishes
from fedcso.runs.parser import simple_parser
from fedcso.studies.folders import open_run


def main(arguments: list[str]) -> int:
    """Write and print the decisions of a run."""
    parser = simple_parser("decide", str(__doc__))
    parser.add_argument("folder", help="the folder of a finished run")
    parser.add_class_arguments(Wishes, as_group=False)
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap and of shuffled columns")
    options = parser.parse_args(arguments)
    from fedcso.datasets.tables.agree import ELSEWHERE
    from fedcso.reports.decisions import write_decisions
    from fedcso.reports.recorded import record_of
    from fedcso.runs.config import RunConfig
    from fedcso.runs.execute import same_data

    folder = open_run(options.folder)
    if folder.status != "done":
        raise FedcsoError(f"{folder.path} is not finished ({folder.status}): continue it with fedcso resume")
    if folder.config().get("data") == ELSEWHERE:
        raise FedcsoError(
            f"{folder.path} is a run over real sites, whose rows are not here: its thresholds are in decisions.md; for "
            "others, start a run with other options (fedcso flower run --help)"
        )
    config = RunConfig.of(folder)
    task = same_data(folder, config.task())
    best = record_of(folder).chosen()
    method, seed = str(best["algorithm"]), int(best["seed"])
    found = config.study(config.units(task), folder.path).collect()
    trace = found[method][0][list(config.seeds).index(seed)]
    wishes = Wishes(**{field.name: options[field.name] for field in fields(Wishes)})
    print(write_decisions(folder, task, method, trace.best, wishes, options.seed))
    print(f"written {folder.path / 'decisions.md'}")
    return 0
