"""A site's executor has imported what messages need, and can be forked."""

import subprocess
import sys

import pytest

LOADED = """
import sys, threading
from fedcso.federation.deploy.executor import load_what_messages_need
load_what_messages_need()
print(threading.active_count(), {"torch", "pandas", "sklearn.metrics", "fedcso.problems.auprc"} <= set(sys.modules))
"""


@pytest.mark.federation
def test_what_messages_need_is_imported_without_starting_a_thread():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout == "1 True\n"
