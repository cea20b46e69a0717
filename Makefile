# Two commands for newcomers: `make demo` and `make test`. Each sets up what it needs in .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
# COMPAS may not be shipped: the benchmarks look beside the project, then in the cache, then on the network.
COMPAS := $(abspath $(wildcard ../shared/data/openxai))
FIND_COMPAS := $(if $(COMPAS),ROCERF_COMPAS=$(COMPAS))
# CERTIFICATE=--quick leaves out the proofs that take minutes.
CERTIFICATE ?=
DEVICE ?= cpu
# Workers of ours and threads of BLAS on the same cores slow each other down many times over.
export OPENBLAS_NUM_THREADS ?= 1
# The same goes for torch and the test workers, below.

.PHONY: help demo serve test thorough quick lint format bench validity networks picked trees docs gallery release-check clean

help:
	@echo "make demo      German Credit end to end, with a report in out/demo.html"
	@echo "make serve     the service with German Credit, at http://127.0.0.1:8000, with a token for every role"
	@echo "make test      lint, types, import contract, all tests, doctests, README examples (about 18 minutes on two cores)"
	@echo "make quick     the fast tests only (under two minutes on two cores)"
	@echo "make thorough  all tests, the long ones at their full length (make test: a third of their cases)"
	@echo "make lint      ruff, mypy --strict, import contract"
	@echo "make bench     benchmarks (ratios measured in one run; half an hour, CERTIFICATE=--quick: 6 minutes)"
	@echo "make networks  the same for neural networks, with every method (DEVICE=cuda on a GPU)"
	@echo "make picked    networks without rows picked to harm each point, with every method (DEVICE=cuda on a GPU)"
	@echo "make trees     boosted trees under harmful deletions, before and after (XGBoost, LightGBM where installed)"
	@echo "make docs      the documentation site in out/site; a broken link is an error"
	@echo "make gallery   runs the examples and writes their pages and notebooks (docs/gallery)"
	@echo "make release-check  wheel and sdist built, checked, and tried on every Python that is found (3.11 to 3.13)"
	@echo "make validity  the paper's validity and cost figures on the real tables"

$(VENV)/core.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/core.stamp
	$(PIP) -e '.[dev]'
	@touch $@

$(VENV)/service.stamp: $(VENV)/core.stamp
	$(PIP) -e '.[service]'
	@touch $@

serve: $(VENV)/service.stamp
	$(BIN)/rocerf serve --demo

demo: $(VENV)/core.stamp
	$(BIN)/rocerf demo --out out/demo.html

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -q --durations=40

thorough: $(VENV)/dev.stamp
	ROCERF_THOROUGH=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -q --durations=40

quick: $(VENV)/dev.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -q -m "not slow"

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/core.stamp
	$(BIN)/python -m benchmarks.first_order
	$(FIND_COMPAS) $(BIN)/python -m benchmarks.retrained
	$(FIND_COMPAS) $(BIN)/python -m benchmarks.retrained --rivals
	$(BIN)/python -m benchmarks.growth 10000x20 100000x20 1000000x20 5000x500
	$(BIN)/python -m benchmarks.out_of_core 1e5 1e6
	$(BIN)/python -m benchmarks.yardsticks
	$(BIN)/python -m benchmarks.own_beam
	$(FIND_COMPAS) $(BIN)/python -m benchmarks.certificate $(CERTIFICATE)

validity: $(VENV)/core.stamp
	$(FIND_COMPAS) $(BIN)/python -m benchmarks.validity

picked: $(VENV)/dev.stamp
	$(FIND_COMPAS) $(BIN)/python -m benchmarks.picked_networks --device $(DEVICE)

networks: $(VENV)/dev.stamp
	$(FIND_COMPAS) $(BIN)/python -m benchmarks.networks --device $(DEVICE)
	$(BIN)/python -m benchmarks.german_puzzle --device $(DEVICE)

trees: $(VENV)/core.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.trees

docs: $(VENV)/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

gallery: $(VENV)/dev.stamp
	$(FIND_COMPAS) OMP_NUM_THREADS=1 $(BIN)/python tools/gallery.py

release-check: $(VENV)/dev.stamp
	$(PIP) build twine
	$(BIN)/python tools/check_release.py

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache
