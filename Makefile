# One verb an intent. `make demo` and `make test` install what they need first.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALLER := uv==0.13.9

.PHONY: help install demo test pytest fuzz lint format bench ui docs clean

help: ## Show this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Build .venv from the lock

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "evalpipe needs Python 3.11 or newer, this is %d.%d; name another with PYTHON=" % v[:2])'
	$(PYTHON) -m venv $(VENV)
	@# uv takes seconds where pip takes minutes, but does not read pip's settings (a mirror, say).
	@{ $(PIP) '$(INSTALLER)' && $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --requirement requirements.lock; } \
	  || { echo 'uv could not install the lock; pip does, which takes longer'; $(PIP) --requirement requirements.lock; }
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

demo: install ## Simulate a fortnight with known truth, run every night of it, show truth beside estimate
	$(BIN)/evalpipe demo

test: install ## Lint, types, and all tests
	@# Side by side: the type checker keeps one core busy for a minute.
	$(MAKE) --no-print-directory --jobs=2 lint pytest

pytest: install
	$(BIN)/python -m pytest -n 2 --dist worksteal

fuzz: install ## Damaged logs of every format by the hundred thousand; FUZZ="--inputs N --seed N"
	$(BIN)/python -m evalpipe_tests.fuzz $(FUZZ)

lint: install ## ruff and the type checker
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install ## Ratios against a peer or a limit, one script a claim
	@for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

ui: install ## Open Dagster's UI on the home in .evalpipe
	$(BIN)/evalpipe ui

docs: install ## Write the generated pages of docs/ and the catalog of the SQL models anew
	$(BIN)/python -m evalpipe.contracts.pages docs
	$(BIN)/python -m evalpipe.store.sql_models dbt_like_sql
	$(BIN)/python -m evalpipe.store.sql_page docs

clean: ## Remove the environment and caches; homes with data are kept
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .fuzz
