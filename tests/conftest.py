"""How all tests run: one torch thread each, and property tests that try the same examples every time."""

import torch
from hypothesis import settings

torch.set_num_threads(1)

settings.register_profile("fedcso", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("fedcso")
