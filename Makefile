# Needs only Python 3.11; the first target that is made sets up .venv.
#   make run    run the three methods of the paper on its first problem
#   make test   check style and types, and run the tests
#   make bench  run the benchmarks and write docs/performance.md (QUICK=1 takes less than five minutes)
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: run test test-federation lint types tests docs dist bench format clean

run: $(VENV)/.installed
	$(BIN)/fedcso run invariant_logistic

test: lint types tests

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

tests: $(VENV)/.installed-dev
	$(BIN)/pytest -n 2 --ignore tests/federation/real
	$(BIN)/pytest tests/federation/real

# All faults and attacks on a federation of real processes; takes about half an hour.
test-federation: $(VENV)/.installed-dev
	$(BIN)/pytest tests/federation/real -m 'federation or not federation' -v --durations=0

docs: $(VENV)/.installed-dev
	$(BIN)/python -m docs.architecture
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build
	@echo 'docs/_build/index.html'

dist: $(VENV)/.installed-dev
	rm -rf dist
	$(BIN)/python -m build --quiet --outdir dist
	@ls dist

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache

# The stamp files make sure that packages are installed once, and again when pyproject.toml has changed.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo 'installing into $(VENV) (takes a minute or two the first time)'
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo 'installing into $(VENV), with the tools for testing (takes a few minutes the first time)'
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/.installed
