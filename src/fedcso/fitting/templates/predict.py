"""Score new rows:  python predict.py new.csv > scored.csv

Needs onnxruntime, numpy and pandas (pip install onnxruntime numpy pandas). See README.md beside this file.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from scoring.exported import Model, main  # noqa: E402, F401

if __name__ == "__main__":
    sys.exit(main(HERE, sys.argv[1:]))
