# Needs only Python 3.11, 3.12 or 3.13; the first target that is made sets up .venv.
#   make run    show in a minute what this is for, on embedded data
#   make test   check style and types, and run the tests
#   make bench  run the benchmarks and write docs/performance.md (QUICK=1 takes less than five minutes)
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# Compiled modules are kept, whatever the environment says: without them every process compiles all that it imports,
# which takes three times as long as importing it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-federation test-oldest test-python test-dist audit licences two-federations lint types warm tests docs dist bench format clean

run: $(VENV)/.installed
	$(BIN)/fedcso tour

# Federations of real processes often wait, so they run beside the rest; their output comes at the end.
FEDERATIONS := .pytest_cache/two-federations.txt

test: lint warm
	@mkdir -p $(dir $(FEDERATIONS))
	@$(MAKE) --no-print-directory two-federations >$(FEDERATIONS) 2>&1 & federations=$$!; \
	$(MAKE) --no-print-directory --jobs 2 types tests; others=$$?; \
	wait $$federations; federations=$$?; \
	cat $(FEDERATIONS); exit $$((others | federations))

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# Compile once what all processes of the tests import; otherwise each of them does it, all at the same time.
warm: $(VENV)/.installed-dev
	@$(BIN)/python -c 'import fedcso.cli.commands.flower.run, fedcso.fitting.python, pytest, hypothesis, torch.onnx, flwr.app'

# Three workers and more are slower on two cores, because each of them imports and collects everything.
tests: $(VENV)/.installed-dev
	$(BIN)/pytest -n 2 --dist worksteal --ignore tests/federation/real

two-federations: $(VENV)/.installed-dev
	$(BIN)/pytest -p no:cacheprovider tests/federation/real

# All faults and attacks on a federation of real processes, and their table in docs/deployment.md; takes about half an hour.
test-federation: $(VENV)/.installed-dev
	rm -f docs/faults.jsonl
	$(BIN)/pytest tests/federation/real -m 'federation or not federation' -v --durations=0 --faults docs/faults.jsonl
	$(BIN)/python -m tests.federation.real.faults docs/faults.jsonl docs/deployment.md

# The quick tests with the oldest versions that pyproject.toml allows, in an environment of its own. Not of torch, of which
# plain pip installs gigabytes for graphics cards except in its newest version, and not of Flower, which allows one version.
# Old packages call what newer ones that they need deprecate (matplotlib 3.8 pyparsing), and warn of what later became an
# error (pandas 2 compares None with NaN), so these warnings are no errors.
OLDEST := .venv-oldest
QUICK_TESTS := tests/core tests/codecs tests/datasets tests/engines tests/reports tests/runs tests/theory

test-oldest:
	$(PYTHON) -m venv $(OLDEST)
	$(PYTHON) tests/oldest.py parquet excel images predict sweep >$(OLDEST)/oldest.txt
	$(OLDEST)/bin/pip install --quiet --no-compile -r $(OLDEST)/oldest.txt pytest hypothesis
	PYTHONPATH=$(CURDIR)/src:$(CURDIR) $(OLDEST)/bin/python -m pytest -p no:cacheprovider \
		-W ignore::DeprecationWarning -W ignore::FutureWarning $(QUICK_TESTS)

# The tour and the quick tests with Python 3.11, 3.12 and 3.13, as far as the machine has them.
test-python:
	$(PYTHON) tests/pythons.py $(QUICK_TESTS)

# Known vulnerabilities of all installed packages; says so if the registry does not answer.
audit: $(VENV)/.installed-dev
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install --quiet --no-compile pip-audit
	$(PYTHON) tests/audit.py .venv-audit/bin/pip-audit $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

licences: $(VENV)/.installed-dev
	$(BIN)/python -m docs.licences

docs: $(VENV)/.installed-dev
	$(BIN)/python -m docs.architecture
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build/html
	@echo 'docs/_build/html/index.html'

dist: $(VENV)/.installed-dev
	rm -rf dist
	$(BIN)/python -m build --quiet --outdir dist
	@ls dist

# Wheel and sdist, each installed in an empty environment from which nothing of this repository can be reached.
test-dist: dist
	set -e; for file in $(CURDIR)/dist/fedcso-*; do \
		rm -rf .venv-dist; $(PYTHON) -m venv .venv-dist; \
		.venv-dist/bin/pip install --quiet --no-compile $$file; \
		(cd .venv-dist && bin/fedcso doctor && bin/fedcso tour --quick && echo "$$file works"); \
	done

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(OLDEST) .venv-3.* .venv-audit .venv-dist build dist .mypy_cache .pytest_cache .ruff_cache

# The stamp files make sure that packages are installed once, and again when pyproject.toml has changed.
# A new pip finds versions faster; what is never imported need not be compiled.
PIP_INSTALL := $(BIN)/pip install --quiet --no-compile

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --upgrade pip

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo 'installing into $(VENV) (takes about a minute the first time)'
	$(PIP_INSTALL) --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo 'installing into $(VENV), with the tools for testing (takes a minute or two the first time)'
	$(PIP_INSTALL) --editable '.[dev]'
	touch $@ $(VENV)/.installed
