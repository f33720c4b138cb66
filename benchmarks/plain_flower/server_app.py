"""The coordinator's part: rounds with `send_and_receive`, whose seconds are written to a file."""

import json
import time
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run as many rounds as rounds.json in the run's folder says."""
    out = Path(str(context.run_config["run-folder"]))
    seconds = []
    for _ in range(json.loads((out / "rounds.json").read_text())):
        content = RecordDict({"x": ArrayRecord({"x": torch.zeros(3, dtype=torch.float64)})})
        began = time.monotonic()
        answers = grid.send_and_receive([Message(content, node, "train") for node in grid.get_node_ids()], timeout=300)
        assert all(answer.has_content() for answer in answers)
        seconds.append(time.monotonic() - began)
    (out / "seconds.json").write_text(json.dumps(seconds))
