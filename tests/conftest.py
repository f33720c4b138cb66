"""How all tests run: one torch thread each, prepared data kept with the tests, the same property tests every time."""

import gc
import os
from pathlib import Path

# Before torch is imported, and for the processes that tests start: one thread, since tests run on all cores already,
# and no trial compilations that find out what the processor's vector instructions are.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "0"

import torch
from hypothesis import settings

torch.set_num_threads(1)

settings.register_profile("fedcso", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("fedcso")

# Not in the user's own cache; kept from one run of the tests to the next.
os.environ["FEDCSO_CACHE"] = str(Path(__file__).parent.parent / ".pytest_cache" / "fedcso")


def pytest_collection_finish() -> None:
    """Exempt modules and collected tests, which stay to the end, from every later garbage collection."""
    gc.freeze()
