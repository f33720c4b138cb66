"""What the commands do, as Python functions: run, tune, compare, report, load, resume; notebooks show the results."""
