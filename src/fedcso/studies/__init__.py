"""What the commands do, as Python functions: run, tune, compare, report, load, resume; they return what a notebook shows."""
