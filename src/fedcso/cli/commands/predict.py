"""Score new rows with an exported model.

Takes a folder that fedcso fit has written, or the folder `model` in it, and a table with the columns of the training
data (or pictures). The rows are printed as CSV with their calibrated probability and one column of alerts (0 or 1) for
each threshold. Columns that are not there count as missing values, and a note names them. Needs onnxruntime
(pip install 'fedcso[predict]'); python predict.py in the model's folder does the same without fedcso.

examples:
  fedcso predict runs/2026-01-31_120000_fit_1a2b3c new.csv --out scored.csv
  fedcso predict runs/2026-01-31_120000_fit_1a2b3c/model new.csv > scored.csv
"""

from pathlib import Path

from fedcso.core.errors import FedcsoError
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Write or print scored rows."""
    parser = simple_parser("predict", str(__doc__))
    parser.add_argument("model", help="the folder of the model, or of the run that exported it")
    parser.add_argument("rows", help="the file with the new rows")
    parser.add_argument("--out", default="", help="the CSV file to write; without it rows are printed")
    options = parser.parse_args(arguments)
    from fedcso.fitting.exported import Model, score_to

    score_to(Model(find_model(Path(options.model))), options.rows, options.out)
    return 0


def find_model(folder: Path) -> Path:
    """Return the folder of an exported model, which may be inside the given one."""
    for place in (folder, folder / "model"):
        if (place / "model.onnx").is_file():
            return place
    raise FedcsoError(f"{folder} has no exported model (no model.onnx): give a folder that fedcso fit has written")
