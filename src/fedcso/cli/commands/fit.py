"""Find the best model for rare positives in tables at several sites, and write what people need to decide with it.

Tries several objectives, networks and settings on validation data: average precision with FCSG-M, from scratch and
after cross-entropy; cross-entropy with FedAvg, plain, weighted and balanced; AUROC with CODA+. Then it looks at the
test data once, and shows the chosen model beside ordinary federated learning, pooled data, single sites and
gradient-boosted trees, with intervals. It writes calibrated probabilities, thresholds, a page for people who decide,
and a model that runs without fedcso.

The table is a .csv, .xlsx, .parquet or .npz file with a column that names the site of each row, or a folder with one
file for each site. `fedcso predict` scores new rows; `fedcso flower init … --from` trains over real sites.

examples:
  fedcso fit patients.csv --label readmitted --site hospital
  fedcso fit banks/ --label fraud --precision 0.5 --alerts 20 --rows 1000
  fedcso fit scans.npz --label tumour --site clinic --mirrored true --minutes 30
"""

from typing import Any

from fedcso.fitting.config import FitConfig
from fedcso.runs.folder import RunFolder
from fedcso.runs.parser import DRY_RUN, add_dry_run, simple_parser


def main(arguments: list[str]) -> int:
    """Start a new fit."""
    parser = simple_parser("fit", str(__doc__))
    parser.add_argument("data", help="the table: a .csv, .xlsx, .parquet or .npz file, or a folder of them")
    parser.add_class_arguments(FitConfig, as_group=False, skip={"data"})
    add_dry_run(parser)
    options = {name: value for name, value in parser.parse_args(arguments).as_dict().items() if value is not None}
    data, label, is_dry = options.pop("data"), options.pop("label"), options.pop(DRY_RUN)
    if is_dry:
        from fedcso.cli.work.dry_run import dry_run

        return dry_run(
            lambda place: _fit(data, label, **options | {"out": str(place)}),
            then=f"further objectives, networks and settings for at most {options['minutes']:g} minutes in all, "
            "then a comparison with ordinary federated learning, single sites, pooled data and trees",
        )
    return _fit(data, label, **options)


def _fit(data: str, label: str, **options: Any) -> int:
    from fedcso.fitting.python import fit

    print(fit(data, label, **options, say=_say).summary())
    return 0


def resume(folder: RunFolder) -> int:
    """Carry out what is left of a fit."""
    from fedcso.fitting.python import resume_fit

    print(resume_fit(folder.path, _say).summary())
    return 0


def _say(line: str) -> None:
    print(line, flush=True)
