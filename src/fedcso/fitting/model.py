"""Write a self-contained model: a folder with which rows can be scored where there is neither fedcso nor torch."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError
from fedcso.core.judge import Network
from fedcso.core.version import __version__
from fedcso.datasets.tables.encoders import Preparation
from fedcso.fitting.calibrated import Calibrated
from fedcso.reports.calibration import Calibration
from fedcso.reports.export import as_onnx
from fedcso.reports.thresholds import Threshold

COPIED = (
    "core.errors",
    *(f"datasets.tables.{name}" for name in ("header", "numerals", "delimited", "formats", "pictures")),
    *(f"datasets.tables.{name}" for name in ("dates", "columns", "encoders")),
    "fitting.exported",
)
"""The modules of fedcso that read, prepare and score rows. They use numpy and pandas, and only each other of fedcso."""

PACKAGE = "scoring"
"""What the folder of the copies is called, beside predict.py."""

_TEXTS = Environment(loader=PackageLoader("fedcso.fitting"), undefined=StrictUndefined, keep_trailing_newline=True)


def write_model(
    folder: Path,
    network: Network,
    calibration: Calibration,
    preparation: Preparation | None,
    thresholds: Sequence[Threshold],
    about: Mapping[str, Any],
) -> Path:
    """Write the folder `model` into a folder, and return its path.

    It holds model.onnx (prepared inputs → `score` and calibrated `probability`), preparation.json, thresholds.json,
    predict.py with the code it needs, and README.md.

    Args:
        folder: where to write, such as a run folder
        network: the network and a few of its inputs
        calibration: what makes probabilities of its scores; it becomes a part of model.onnx
        preparation: how rows of a table become inputs; None for pictures
        thresholds: what is an alert; scored rows have a column for each of them
        about: what README.md says of the model, such as its method and its data, by name
    """
    if preparation is None and network.inputs.ndim != 4:
        raise FedcsoError("a model for rows of a table can't be exported without their preparation")
    made = Calibrated(network.module.eval(), calibration)
    chosen = describe_thresholds(thresholds, calibration)
    written: dict[str, bytes | str] = {
        "model.onnx": as_onnx(Network(made, network.inputs), ("score", "probability")),
        "thresholds.json": json.dumps({"calibration": calibration.to_dict(), "thresholds": chosen}, indent=1),
        "predict.py": files("fedcso.fitting").joinpath("templates/predict.py").read_text(),
        f"{PACKAGE}/__init__.py": f'"""The code of fedcso {__version__} that reads, prepares and scores rows."""\n',
        "README.md": _TEXTS.get_template("model.md").render(
            about=about,
            thresholds=chosen,
            calibration=calibration,
            columns=list(dict.fromkeys(encoder.name for encoder in preparation.encoders)) if preparation else [],
            shape="×".join(map(str, network.inputs.shape[1:])),
            version=__version__,
        ),
    }
    if preparation:
        written["preparation.json"] = preparation.to_json()
    for module in COPIED:
        written[f"{PACKAGE}/{module.rpartition('.')[2]}.py"] = _copy(module)
    for name, content in written.items():
        target = folder / "model" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(target, content)
    return folder / "model"


def describe_thresholds(thresholds: Sequence[Threshold], calibration: Calibration) -> list[dict[str, Any]]:
    """Return thresholds as they are kept in JSON; `column` is what the column of their alerts is called."""
    return [
        {
            "column": "alert_" + re.sub(r"[^\w.]+", "_", threshold.wanted),
            "wanted": threshold.wanted,
            "score": threshold.score,
            "probability": float(calibration.apply(np.array([threshold.score]))[0]),
            "on validation data": asdict(threshold.validation),
        }
        for threshold in thresholds
    ]


def _copy(module: str) -> str:
    """Return the source of a module of fedcso, which imports other copies instead of fedcso."""
    source = files("fedcso").joinpath(*module.split(".")[:-1], f"{module.rpartition('.')[2]}.py").read_text()
    return re.sub(r"^from fedcso\.(?:\w+\.)*(\w+) import", rf"from {PACKAGE}.\1 import", source, flags=re.MULTILINE)
