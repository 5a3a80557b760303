# One command each; each sets up what it needs in .venv.
PYTHON ?= python3
BIN := .venv/bin
# What Python and pytest make of a source is kept for the next process, of which the tests begin hundreds.
export PYTHONDONTWRITEBYTECODE =

.PHONY: dev demo test test-all lint fuzz bench wheel docs clean

dev: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

demo: dev
	-$(BIN)/rlhealth check fixtures/runs/lr-jump

test: dev
	$(BIN)/python -m pytest -n 4

# Every Python that is there (nox finds them by their names, such as python3.12), and the lowest versions of the dependencies.
test-all: dev
	$(BIN)/nox

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/rlhealth rules test
	$(BIN)/rlhealth rules docs --check
	$(BIN)/python docs/architecture.py --check
	$(BIN)/python docs/api.py --check
	$(BIN)/python -m tests.audit

docs: dev
	$(BIN)/rlhealth rules docs --write
	$(BIN)/python docs/architecture.py
	$(BIN)/python docs/api.py

fuzz: dev
	$(BIN)/python -m pip install --quiet atheris fsspec
	$(BIN)/python -m tests.fuzz --seconds 60

bench: dev
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	$(BIN)/python -m benchmarks

wheel: dev
	$(BIN)/python -m build --wheel --outdir dist .

clean:
	rm -rf .venv dist .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis
