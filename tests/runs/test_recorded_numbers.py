"""Small runs give the numbers that an earlier version gave: recorded/*.csv are metrics.csv files of version 0.1.

Columns may be added, none may change. On the machine where they were recorded all digits agree; elsewhere the last
digits may differ, because linear algebra libraries add in another order.
"""

from pathlib import Path

import pytest

from tests.command_line import read_csv, run, without_drawing

RECORDED = Path(__file__).parent / "recorded"
SMALL = ["--seeds", "2", "--rounds", "4", "--local-steps", "5", "--outer-batch", "3", "--inner-batch", "8"]
FEW = ["--seeds", "2", "--rounds", "5"]
METHODS = ["FCSG", "FCSG-M", "Acc-FCSG-M", "Local-SCGD", "Local-SCGDM", "SCAFFOLD", "STEM"]
WAYS = [f"FCSG-M(send_u={way})" for way in ("bfloat16", "int8")] + [
    "Acc-FCSG-M(send_u=int8)",
    "FCSG-M(send_u=every(2))",
]
RAGGED = ["--data", "digits", "--clients", "5", "--alpha", "0.4", "--participation", "0.6", "--weights", "size"]
FORMER = [
    *("--sigmoid", "true", "--margin", "0.5", "--clip", "0", "--learning-rate", "0.01", "--momentum", "0.1"),
    *("--bounded", "false", "--logarithm", "false"),
]
"""What were the defaults of auprc when the numbers were recorded."""
RUNS = {
    "reference": ["nested_quadratic", "--algorithm", *METHODS, "--engine", "reference", *SMALL],
    "diagnosed": [
        *("nested_quadratic", "--algorithm", "FCSG-M", "Acc-FCSG-M", *SMALL),
        *("--diagnose-every", "2", "--inner-batch", "2"),
    ],
    "auprc-ragged": ["auprc", "--algorithm", *METHODS[:3], "SOX", "SOAP", *RAGGED, *FEW, "--local-steps", "3", *FORMER],
    "coda": [
        *("auroc", "--algorithm", "CODA+(stage_steps=7)", "--data", "breast_cancer", "--clients", "4"),
        *(*FEW, "--local-steps", "4", "--participation", "3"),
    ],
    "send-u": ["invariant_logistic", "--algorithm", *WAYS, "--participation", "0.5", *SMALL],
    "mlmc": ["nested_quadratic", "--algorithm", "Acc-FCSG-M", *SMALL, "--estimator", "rt_mlmc"],
    "clip-drop": [
        *("invariant_logistic", "--algorithm", "FCSG-M", *SMALL, "--clip", "0.5"),
        *("--on-nonfinite", "drop", "--participation", "0.5"),
    ],
    "cross-entropy": [
        *("cross_entropy", "--algorithm", "FedAvg", "SCAFFOLD", "--data", "digits", "--clients", "4"),
        *("--seeds", "1", "--rounds", "3", "--learning-rate", "0.01"),
    ],
}


@pytest.mark.parametrize("name", RUNS)
def test_every_recorded_column_is_still_there_with_the_same_numbers(name, tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    rows, before = read_csv(run("run", *RUNS[name], out=tmp_path) / "metrics.csv"), read_csv(RECORDED / f"{name}.csv")
    assert len(rows) == len(before)
    for row, recorded in zip(rows, before, strict=True):
        for column in recorded.keys() - {"seconds"}:
            if column == "algorithm" or not recorded[column]:
                assert row[column] == recorded[column]
            else:
                expected = pytest.approx(float(recorded[column]), rel=1e-4, abs=1e-6, nan_ok=True)
                assert float(row[column]) == expected, column
