# Every target does its own set-up in .venv. Nothing outside of this checkout is touched but pip's
# own cache of downloads.
# `make PYTHON=/path/to/python3.12 test` chooses another interpreter for a new .venv.

ifndef PYTHON
# python3 if it is new enough, else the first of the named ones that is.
PYTHON := $(firstword $(foreach p,python3 python3.11 python3.12 python3.13 python3.14,$(shell \
  $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $(p))) python3)
endif

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
# Twice quiet: errors are shown, warnings are not.
PIP := $(PY) -m pip --disable-pip-version-check --quiet --quiet
STAMP := $(VENV)/stamp
DEMO_DIR := demo-output

# Another active environment, or a user's own settings, must not leak into this one.
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX
export PIP_USER := 0
# Put before a command that starts `pufferfish` or `python` by name.
ON_PATH := PATH="$(CURDIR)/$(BIN):$$PATH"

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two pips at once in one environment would trip over each other.
.NOTPARALLEL:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: $(STAMP)-run ## calibrate, release and verify on a real table, step by step (half a minute)
	@$(ON_PATH) sh examples/demo.sh $(DEMO_DIR)

.PHONY: test
test: $(STAMP)-test ## the fast tests (2 to 4 minutes)
	$(PY) -m pytest -n 2 -m "not slow" --ignore=tests/test_docs.py $(ARGS)

.PHONY: test-slow
test-slow: $(STAMP)-test ## the big random runs
	HYPOTHESIS_PROFILE=slow $(PY) -m pytest -n 2 -m slow $(ARGS)

.PHONY: examples
examples: $(STAMP)-test ## run every example of README.md and docs/
	$(PY) -m pytest -n 2 tests/test_docs.py $(ARGS)

.PHONY: lint
lint: $(STAMP)-lint ## style, formatting and strict types
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy --strict

.PHONY: format
format: $(STAMP)-lint ## put the code in the project's format
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

.PHONY: docs
docs: $(STAMP)-docs ## build the documentation in docs/_build/html
	$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@if grep -rlE '<(script|link|img)[^>]*(src|href)="(https?:)?//' docs/_build/html --include='*.html'; \
	then echo "the pages above load files from the internet" >&2; exit 1; fi
	@echo "docs/_build/html/index.html"

.PHONY: bench
bench: $(STAMP)-test ## measure speed, as ratios within one run
	$(PY) benchmarks/run.py $(ARGS)

.PHONY: clean
clean: ## remove .venv and all that was built
	rm -rf $(VENV) build dist docs/_build $(DEMO_DIR) htmlcov .coverage
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of dependencies: set-up runs once, and again when pyproject.toml changes.
$(STAMP)-run: pyproject.toml | $(STAMP)-venv
	@echo "Installing into $(VENV) ..."
	@$(PIP) install --editable .
	@touch $@

$(STAMP)-%: pyproject.toml | $(STAMP)-venv
	@echo "Installing into $(VENV), with what '$*' needs ..."
	@$(PIP) install --editable '.[$*]'
	@touch $@

# An environment that is there and works is kept; a half-made one is made anew.
$(STAMP)-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; name one, as in: make PYTHON=python3.11" >&2; exit 1; }
	@if $(PY) -m pip --version >/dev/null 2>&1; then :; else \
	  echo "Making $(VENV) with $(PYTHON) ..."; $(PYTHON) -m venv --clear $(VENV); fi
	@touch $@
