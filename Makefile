# Every target does its own set-up in .venv. Nothing outside of this checkout is touched but pip's
# own cache of downloads.
# `make PYTHON=/path/to/python3.12 test` chooses another interpreter for a new .venv.

ifndef PYTHON
# python3 if it is new enough, else the first of the named ones that is.
PYTHON := $(firstword $(foreach p,python3 python3.11 python3.12 python3.13 python3.14,$(shell \
  $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $(p))) python3)
endif

VENV := .venv
LOWEST := .venv-lowest
BROWSER := .venv-browser
BIN := $(VENV)/bin
PY := $(BIN)/python
# Twice quiet: errors are shown, warnings are not.
PIP := $(PY) -m pip --disable-pip-version-check --quiet --quiet
# Every target installs the versions in constraints.txt; `make upgrade` renews that file.
INSTALL := $(PIP) install --constraint constraints.txt
STAMP := $(VENV)/stamp
DEMO_DIR := demo-output
CHROMIUM := $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
# What the tests in a browser need and this machine does not have.
LACKED := $(strip $(if $(CHROMIUM),,chromium) \
  $(shell for each in java npm; do command -v $$each >/dev/null || echo $$each; done))

IN_BROWSER := tests/report/test_browser.py tests/explorer/test_explorer_browser.py

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
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: $(STAMP)-run ## calibrate, release and verify on a real table, step by step (half a minute)
	@$(ON_PATH) sh examples/demo.sh $(DEMO_DIR)

.PHONY: test
test: $(STAMP)-test ## the fast tests (2 to 3 minutes)
	$(PY) -m pytest -n 2 -m "not slow" --ignore=tests/test_docs.py $(ARGS)

.PHONY: test-slow
test-slow: $(STAMP)-test ## the big random runs
	HYPOTHESIS_PROFILE=slow $(PY) -m pytest -n 2 -m slow $(ARGS)

.PHONY: test-workers
test-workers: $(STAMP)-test ## workers of Spark and Dask are killed during releases, RUNS times each (needs java)
	PUFFERFISH_RUNS=$(or $(RUNS),20) $(PY) -m pytest tests/release/test_workers.py $(ARGS)

.PHONY: test-lowest
test-lowest: $(LOWEST)/stamp ## the fast tests, on the lowest versions that pyproject.toml allows
	$(LOWEST)/bin/python -m pytest -n 2 -m "not slow" --ignore=tests/test_docs.py $(ARGS)

.PHONY: test-browser
ifeq ($(LACKED),)
test-browser: $(STAMP)-test $(STAMP)-browser $(BROWSER)/stamp ## reports and the explorer in a browser: axe, and a validator of HTML
	PUFFERFISH_BROWSER="$(CHROMIUM)" $(PY) -m pytest $(IN_BROWSER) $(ARGS)
else
test-browser:
	@echo "Left out: what reports and the explorer do in a browser (with axe, and a validator of HTML). Missing: $(LACKED)"
endif

.PHONY: screenshots
screenshots: $(STAMP)-test $(STAMP)-browser $(BROWSER)/stamp ## take the screenshots of README.md and the guide again (needs chromium)
	PUFFERFISH_BROWSER="$(CHROMIUM)" PUFFERFISH_PICTURES=docs/pictures $(PY) -m pytest -q \
	  tests/explorer/test_explorer_browser.py -k screenshots

.PHONY: examples
examples: $(STAMP)-test ## run every example of README.md and docs/
	$(PY) -m pytest -n 2 tests/test_docs.py $(ARGS)

.PHONY: pictures
pictures: $(STAMP)-test ## draw the pictures of README.md and the guide again
	$(PY) examples/pictures.py docs/pictures

.PHONY: lint
lint: $(STAMP)-lint ## style, formatting, strict types and the order of the folders
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy --strict
	$(BIN)/lint-imports

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
bench: $(STAMP)-bench ## measure speed beside others; writes benchmarks/report.html (a quarter of an hour)
	$(PY) benchmarks/run.py $(ARGS)

.PHONY: upgrade
upgrade: ## renew constraints.txt with the newest versions that pyproject.toml allows
	rm -rf $(VENV)-upgrade
	$(PYTHON) -m venv $(VENV)-upgrade
	$(VENV)-upgrade/bin/python -m pip --disable-pip-version-check --quiet --quiet install '.[test,browser,lint,docs,bench]'
	{ echo "# Versions that the make targets install; renewed by: make upgrade"; \
	  $(VENV)-upgrade/bin/python -m pip --disable-pip-version-check freeze --exclude pufferfish-privacy; \
	} > constraints.txt
	rm -rf $(VENV)-upgrade

.PHONY: clean
clean: ## remove .venv and all that was built
	rm -rf $(VENV) $(LOWEST) $(BROWSER) build dist docs/_build $(DEMO_DIR) htmlcov .coverage
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of dependencies: set-up runs once, and again when these files change.
$(STAMP)-run: pyproject.toml constraints.txt | $(STAMP)-venv
	@echo "Installing into $(VENV) ..."
	@$(INSTALL) --editable .
	@touch $@

$(STAMP)-%: pyproject.toml constraints.txt | $(STAMP)-venv
	@echo "Installing into $(VENV), with what '$*' needs ..."
	@$(INSTALL) --editable '.[$*]'
	@touch $@

# uv alone knows how to choose the lowest versions.
$(LOWEST)/stamp: pyproject.toml
	@echo "Making $(LOWEST) with the lowest versions ..."
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet --quiet install uv
	@$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python \
	  --resolution lowest-direct --editable '.[test]'
	@touch $@

$(BROWSER)/stamp: Makefile
	@echo "Making $(BROWSER) with axe and the validator ..."
	@rm -rf $(BROWSER)
	@mkdir $(BROWSER)
	@npm install --prefix $(BROWSER) --no-audit --no-fund --ignore-scripts --loglevel=error \
	  axe-core@4.14.1 vnu-jar@26.9.27 >/dev/null
	@touch $@

# An environment that is there and works is kept; a half-made one is made anew.
$(STAMP)-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; name one, as in: make PYTHON=python3.11" >&2; exit 1; }
	@if $(PY) -m pip --version >/dev/null 2>&1; then :; else \
	  echo "Making $(VENV) with $(PYTHON) ..."; $(PYTHON) -m venv --clear $(VENV); fi
	@touch $@
