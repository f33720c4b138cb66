"""Show what fedcso runs on: versions, threads, device, optional packages and the datasets found.

examples:
  fedcso doctor
"""

import importlib.util
import shutil

from fedcso.cli.commands.data import check
from fedcso.core.errors import FedcsoError
from fedcso.datasets import TABLES
from fedcso.runs.folder import environment
from fedcso.runs.parser import simple_parser

EXTRAS = {
    "flower": ["flwr"],
    "parquet": ["pyarrow"],
    "excel": ["openpyxl"],
    "images": ["PIL"],
    "predict": ["onnxruntime"],
    "sweep": ["optuna"],
    "track": ["tensorboard", "mlflow", "wandb"],
}


def main(arguments: list[str]) -> int:
    """Print the versions, the machine, the extras and the datasets."""
    simple_parser("doctor", str(__doc__)).parse_args(arguments)
    import torch

    found = environment()
    for name, version in found["versions"].items():
        print(f"{name:14} {version}")
    print(f"{'commit':14} {found['commit'] or 'none (not a git checkout)'}")
    for name, value in found["machine"].items():
        print(f"{name:14} {value}")
    print(f"{'device':14} {'cuda' if torch.cuda.is_available() else 'cpu'}")
    print(f"{'compiler':14} {shutil.which('cc') or shutil.which('gcc') or 'none found'}")
    for extra, modules in EXTRAS.items():
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        state = "installed" if not missing else f"missing {', '.join(missing)}: pip install 'fedcso[{extra}]'"
        print(f"{'extra ' + extra:14} {state}")
    for name in (name for table in TABLES for name in table):
        try:
            print(f"{'data ' + name:14} found, {check(name)}")
        except FedcsoError as error:
            print(f"{'data ' + name:14} not found: {error}")
    return 0
