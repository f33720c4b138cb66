"""The paper's figures and tables, one a file: settings, what the paper states, and what comes out here."""

from types import ModuleType

from fedcso.experiments import figure1

EXPERIMENTS: dict[str, ModuleType] = {"figure1": figure1}
"""By name, a module with `settings(quick)` and `carry_out(folder)`. A new one is a file and a row here."""
