"""Find the best model for rare positives in tables at several sites, and write what people need to decide with it.

Tries several objectives, networks and settings on validation data (average precision with FCSG-M, from scratch and after
cross-entropy; cross-entropy with FedAvg, plain and with weighted classes; AUROC with CODA+), then looks at the test data
once: the chosen model beside ordinary federated learning, pooled data, single sites and gradient-boosted trees, with
intervals. Writes calibrated probabilities, thresholds, a page for people who decide, and a model that runs without fedcso.

The table is a .csv, .xlsx, .parquet or .npz file with a column that names the site of each row, or a folder with one
file for each site. `fedcso predict` scores new rows; `fedcso flower init … --from` trains over real sites.

examples:
  fedcso fit patients.csv --label readmitted --site hospital
  fedcso fit banks/ --label fraud --precision 0.5 --alerts 20 --rows 1000
  fedcso fit scans.npz --label tumour --site clinic --mirrored true --minutes 30
"""

from fedcso.cli.parser import simple_parser
from fedcso.datasets.tables.sites import Sites
from fedcso.fitting.config import FitConfig
from fedcso.fitting.pipeline import begin, carry_out, require_same_data
from fedcso.runs.folder import RunFolder

HELP = "find the best model for rare positives in tables at several sites"


def main(arguments: list[str]) -> int:
    """Start a new fit."""
    parser = simple_parser("fit", str(__doc__))
    parser.add_argument("data", help="the table: a .csv, .xlsx, .parquet or .npz file, or a folder of them", default="")
    parser.add_class_arguments(FitConfig, as_group=False, skip={"data"})
    config = FitConfig.from_flat(parser.parse_args(arguments).as_dict())
    sites = config.load()
    for note in sites.notes:
        print(f"note    {note}")
    return _finish(begin(config, sites), config, sites)


def resume(folder: RunFolder) -> int:
    """Carry out what is left of a fit."""
    folder.require_same_sources()
    config = FitConfig.from_flat(folder.config())
    sites = config.load()
    require_same_data(folder, config, sites)
    return _finish(folder, config, sites)


def _finish(folder: RunFolder, config: FitConfig, sites: Sites) -> int:
    print(carry_out(folder, config, sites, lambda line: print(line, flush=True)).summary())
    return 0
