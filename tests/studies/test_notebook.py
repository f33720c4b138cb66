"""A run in a real notebook: bars while it goes on, and then the table and the curves."""

import pytest

CELL = """
import fedcso
fedcso.run("nested_quadratic", "FCSG", rounds=2, local_steps=2, seeds=1, clients=2)
"""


def test_a_run_shows_its_progress_and_itself(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install 'fedcso[dev]'")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install 'fedcso[dev]'")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = notebook.cells[0].outputs
    shown = [output.data.get("text/html", "") for output in outputs if "data" in output]
    assert any('<progress value="2" max="2">' in html for html in shown)
    assert any("<td>FCSG</td>" in html and "data:image/png" in html for html in shown)
    assert not [output for output in outputs if output.output_type == "stream" and output.name == "stderr"]
