# Two commands on a bare machine (Python 3.11+ and make): `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-gpu cover lint format bench docs clean

help:
	@echo "make demo    learn two streams and draw the error after each task (under a minute)"
	@echo "make test    the tests"
	@echo "make test-gpu  the tests of devices, on this machine's GPU too (conche[gpu])"
	@echo "make cover   the tests, and how much of the source they cover (slower)"
	@echo "make lint    ruff, mypy --strict, and the import contracts"
	@echo "make bench   the benchmarks whose table the README shows"
	@echo "make docs    this project's site, in site/: tutorials, gallery, reference"
	@echo "Another Python: make test PYTHON=python3.12"

$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[cli]'
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) --editable '.[dev,mpi,ray]'
	@touch $@

demo: $(VENV)/.core
	$(BIN)/conche demo --out demo

test: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadgroup

test-gpu: $(VENV)/.dev
	$(PIP) --editable '.[gpu]'
	$(BIN)/python -c "from conche.common.device import find_device; find_device('cuda')"
	$(BIN)/python -m pytest tests/test_devices.py tests/test_device_estimators.py

cover: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadgroup --cov --cov-report term:skip-covered

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

$(VENV)/.docs: $(VENV)/.core
	$(PIP) --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	rm -rf site docs/api/generated docs/examples
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet \
		--fresh-env --jobs 2 -d .doctrees docs site
	$(BIN)/python docs/check_site.py site
	@echo "site/index.html"

clean:
	rm -rf .venv* .pytest_cache .mypy_cache .ruff_cache .coverage* demo site
	rm -rf .doctrees docs/api/generated docs/commands.md docs/examples
