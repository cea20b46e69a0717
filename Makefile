# Two commands for newcomers: `make demo` and `make test`. Each sets up what it needs in .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
COMPAS := $(wildcard ../shared/data/openxai)

.PHONY: help demo test quick lint format bench validity clean

help:
	@echo "make demo      German Credit end to end, with a report in out/demo.html"
	@echo "make test      lint, types, import contract, all tests, doctests, README examples"
	@echo "make quick     the fast tests only (under two minutes)"
	@echo "make lint      ruff, mypy --strict, import contract"
	@echo "make bench     benchmarks (ratios measured in one run), results in out/"
	@echo "make validity  the paper's validity and cost figures on the real tables"

$(VENV)/core.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/core.stamp
	$(PIP) -e '.[dev]'
	@touch $@

demo: $(VENV)/core.stamp
	$(BIN)/rocerf demo --out out/demo.html

test: lint
	$(BIN)/python -m pytest -n auto -q

quick: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n auto -q -m "not slow"

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.first_order

validity: $(VENV)/core.stamp
	$(if $(COMPAS),ROCERF_COMPAS=$(COMPAS)) $(BIN)/python -m benchmarks.validity

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache
