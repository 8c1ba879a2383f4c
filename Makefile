# Two commands on a bare machine (Python 3.11+ and make): `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test lint types imports format bench clean

help:
	@echo "make demo    learn two streams and draw the error after each task (under a minute)"
	@echo "make test    the tests"
	@echo "make lint    ruff, mypy --strict, and the import contract"
	@echo "make bench   the benchmarks whose table the README shows"

$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) --editable '.[dev,mpi,ray]'
	@touch $@

demo: $(VENV)/.core
	$(BIN)/conche demo --out demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache demo
