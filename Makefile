# On a fresh machine with Python 3.11 and nothing else:
#   make run    sets up .venv and solves the paper's first problem
#   make test   sets up .venv and passes lint, types and tests
#   make bench  times everything and writes docs/performance.md (QUICK=1: below five minutes)
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

# Every fault and every attack on a federation of real processes: about half an hour.
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

# The stamps make installation happen once, and again when pyproject.toml changes.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo 'installing into $(VENV) (a minute or two, once)'
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo 'installing into $(VENV), with the tools for testing (a few minutes, once)'
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/.installed
