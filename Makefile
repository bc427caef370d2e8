# What a person runs, and what CI runs. `make` alone lists the targets.
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test bench bench-setup check format lint types layers dependencies lock lock-check schemas clean

help:  ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

# Two sizes of one environment: what the product needs, and what working on it needs as well.
$(VENV)/.runtime: requirements.lock tools/setup.sh
	@sh tools/setup.sh requirements.lock
	@touch $@

$(VENV)/.development: requirements-dev.lock tools/setup.sh
	@sh tools/setup.sh requirements-dev.lock
	@touch $(VENV)/.runtime $@

setup: $(VENV)/.development  ## Make .venv, with uv or pip, from the lock file.

demo: $(VENV)/.runtime  ## Real sessions through a real Kafka into a real Redis. SESSIONS=path: your own.
	@$(BIN)/contextgauge demo $(if $(SESSIONS),"$(SESSIONS)")

test: setup  ## Run all tests; a missing part (Java, Maven, Redis) skips what needs it.
	$(BIN)/python -m pytest

bench/.venv/.done: bench/requirements.lock
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python bench/.venv
	@$(BIN)/uv pip install --quiet --python bench/.venv/bin/python --require-hashes -r $<
	@touch $@

bench-setup: setup bench/.venv/.done  ## Make what is compared with: bench/.venv, Kafka Streams.
	@$(BIN)/python -c 'from bench.systems import build_java; build_java()'

bench: bench-setup  ## Compare with Quix Streams and Kafka Streams. QUICK=1: at most 5 minutes.
	@$(BIN)/python -m bench.run $(if $(QUICK),--quick)

format: setup  ## Format the code.
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

dependencies: setup
	$(BIN)/deptry .

lock: setup  ## Resolve the dependencies anew into the lock files.
	@sh tools/lock.sh

lock-check: setup
	@sh tools/lock.sh --check

schemas: setup  ## Write the JSON Schemas of records and views.
	$(BIN)/contextgauge schemas

check: lint types layers dependencies lock-check  ## All that CI looks at.
	$(BIN)/python -m pytest --cov --cov-branch --cov-report=term:skip-covered
	$(BIN)/coverage report --include='schemas/*,streams/core/*' --fail-under=100 --skip-covered

clean:  ## Delete what can be made again: environment, caches, local data.
	rm -rf $(VENV) .stack .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage htmlcov
	rm -rf deploy/kafka/libs deploy/kafka/target
	rm -rf bench/.venv bench/.cache bench/peers/kafka_streams/target
