# The tasks of this project. `make demo` and `make test` need Python 3.10 or later and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := .demo
C1 := tests/vectors/porep/2k-random.json
PARAMS := $(DEMO)/parameters

BENCHES := field ntt msm params prove server

.PHONY: help demo test check format bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    prove and verify a real 2 KiB sector (development parameters, kept in $(DEMO)/)"
	@echo "make test    the fast tests"
	@echo "make check   format, lint, types and the fast tests"
	@echo "make format  let ruff format and mend"
	@echo "make bench   all benchmarks, whose numbers go into docs/performance.md and README.md"
	@echo "make clean   remove the environment, the demo and caches of tools"

# A stamp for each set of dependencies: the environment is made once and renewed when pyproject.toml changes.
$(VENV)/.runtime: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "cuzk needs Python 3.10 or later; '$(PYTHON)' is `$(PYTHON) -V 2>&1`. Name another: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(PARAMS)/.complete: | $(VENV)/.runtime
	$(BIN)/cuzk params generate --sector-size 2KiB --insecure-dev --out $(PARAMS)
	@touch $@

demo: $(VENV)/.runtime $(PARAMS)/.complete
	$(BIN)/cuzk prove $(C1) --params $(PARAMS) --out $(DEMO)/proof.bin
	$(BIN)/cuzk verify $(C1) $(DEMO)/proof.bin --params $(PARAMS)

test: $(VENV)/.dev
	$(BIN)/python -m pytest

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev
	mkdir -p .bench/results
	for subject in $(BENCHES); do $(BIN)/python -m bench.$$subject --json .bench/results/$$subject.json || exit 1; done
	$(BIN)/python -m bench.tables .bench/results

clean:
	rm -rf $(VENV) $(DEMO) .bench .pytest_cache .hypothesis .mypy_cache .ruff_cache build dist *.egg-info
