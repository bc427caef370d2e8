# What a person runs, and what CI runs. `make` alone lists the targets.
VENV := .venv
BIN := $(VENV)/bin

# Compiled bytecode is kept, whatever the environment says: without it each start of the command
# costs twice the CPU time, and the tests start it hundreds of times.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup view demo demo-compaction page screenshots test test-fast test-extended test-long test-shared dst chaos chaos-compiled mutants fuzz compile sanitize bench bench-setup frameworks-setup spark-setup check compiled check-compiled check-measured format lint types layers dependencies lock lock-check audit schemas clean

help:  ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

# Two sizes of one environment: what the product needs, and what working on it needs as well.
$(VENV)/.runtime: requirements.lock tools/setup.sh
	@sh tools/setup.sh requirements.lock
	@touch $@

$(VENV)/.development: requirements-dev.lock tools/setup.sh
	@sh tools/setup.sh requirements-dev.lock
	@touch $(VENV)/.runtime $@

# What the page ships next to its own files. What has no Node.js has tables in place of charts.
PAGE := streams/serve/page/vendor
PAGE_PINS := tools/page.sh tools/page/package.json tools/page/package-lock.json

$(PAGE)/uPlot.esm.js: $(PAGE_PINS)
	@sh tools/page.sh
	@test ! -e $@ || touch $@

tools/page/node_modules/axe-core/axe.min.js: $(PAGE_PINS)
	@sh tools/page.sh --dev
	@test ! -e $@ || touch $@ $(PAGE)/uPlot.esm.js

page: tools/page/node_modules/axe-core/axe.min.js $(PAGE)/uPlot.esm.js  ## Fetch the web page's chart library, with npm.

setup: $(VENV)/.development page  ## Make .venv, with uv or pip, from the lock file.

screenshots: setup  ## Recreate the pictures in docs/screens from simulated sessions.
	$(BIN)/python -m tools.screenshots

# In a terminal Ctrl-C is for the command alone, which then ends well: make would end with an error, and
# `exit` keeps the shell from becoming the command. Elsewhere the command takes the shell's place: what
# ends make would end the shell, and leave the command with its services.
ALONE = test -t 0 || exec $(1); set -m; $(1); exit $$?

demo: $(VENV)/.runtime $(PAGE)/uPlot.esm.js  ## Real sessions through a real Kafka into a real Redis. SESSIONS=path: your own. SERVE=1: then the page.
	@$(call ALONE,$(BIN)/contextgauge demo $(if $(filter-out 0,$(SERVE)),--serve) $(if $(SESSIONS),"$(SESSIONS)"))

demo-compaction: $(VENV)/.runtime $(PAGE)/uPlot.esm.js  ## An agent that is compacted by the service, through a real Kafka. SERVE=1: then the page.
	@$(call ALONE,$(BIN)/python -m tools.demo_compaction $(if $(filter-out 0,$(SERVE)),--serve))

view: $(VENV)/.runtime $(PAGE)/uPlot.esm.js  ## The page of the sessions on this machine. SESSIONS=path: of others.
	@$(call ALONE,$(BIN)/contextgauge view $(if $(SESSIONS),"$(SESSIONS)"))

# Each pytest worker has one or two brokers, a Redis and a Chromium of its own, 1 to 2 GB of memory, and
# waits for them at times: two more than a small machine has cores. Fast tests wait for nothing, and each
# worker collects all tests, which takes some seconds of a core.
WORKERS := 4
test-fast: WORKERS := 2
check-compiled check-measured: WORKERS := 2
TESTS := tests
PYTEST = $(BIN)/python -m pytest -n $(WORKERS)

# Made where Java and Maven are; the tests of Kafka skip, or fail under CI, where they are not.
KAFKA_CLASSES := $(VENV)/.kafka-classes

$(KAFKA_CLASSES): streams/edge/local_stack/config/pom.xml streams/edge/local_stack/stack.py \
		tools/kafka_classes.py $(VENV)/.development
	-@$(BIN)/python -m tools.kafka_classes && touch $@

# What takes some seconds of the processor each is for `make test-extended`. TESTS=path: all of these.
CHECKED := not long and not extended
EXTENDED := extended and not long

test: setup $(KAFKA_CLASSES)  ## Run the tests; a missing part (Java, Redis) skips what needs it.
	$(PYTEST) $(if $(filter tests,$(TESTS)),-m "$(CHECKED)") $(TESTS)

test-extended: export SECOND_TRY := 1
test-extended: setup $(KAFKA_CLASSES) frameworks-setup compiled  ## Run what the check leaves out: documents, kills, rights, packages; half an hour.
	@failed=0; set -x; $(if $(filter tests,$(TESTS)),\
	make --no-print-directory dst RUNS=3000 || failed=1; \
	make --no-print-directory check-compiled CHECKED="$(EXTENDED)" || failed=1; )\
	$(PYTEST) -m "$(EXTENDED)" --durations=40 --durations-min=3 $(TESTS) || failed=1; \
	exit $$failed

test-fast: setup  ## Run the quick tests that need no service: no Kafka, Redis, Chromium or processes.
	QUICK_TESTS=1 $(PYTEST) -m "not service and not slow and $(CHECKED)" $(TESTS)

test-long: setup $(KAFKA_CLASSES)  ## Run the minutes-long forms: load, rebuilds, kills. TESTS=path: only those.
	LONG_TESTS=1 $(BIN)/python -m pytest -m long -s $(TESTS)

# Simulated: see docs/SIMULATION.md; generated: docs/RELIABILITY.md. None needs a service.
SEED := 1
RUNS := 20000
JOBS := 2

dst: $(VENV)/.development  ## Simulate all workers by seeds: RUNS=, from SEED= on, in JOBS= processes.
	$(BIN)/python -m tests.simulation --seed $(SEED) --runs $(RUNS) --jobs $(JOBS)
	$(BIN)/python -m tests.simulation --scenario control --seed $(SEED) --runs $$(( $(RUNS) / 40 )) --jobs $(JOBS)

mutants: $(VENV)/.development  ## Plant each known mistake, and look for the seed that finds it.
	$(BIN)/python -m tests.simulation.mutants --jobs $(JOBS)

INPUTS := 1000000

# Compiled where it can be; a part of it is compared with the pure product then.
fuzz: compiled  ## Generated messages, from bytes to views: INPUTS=, by SEED=, in JOBS= processes.
	@if [ -e $(COMPILED)/.done ]; then export PYTHONPATH="$(COMPILED):."; else export PYTHONPATH=.; fi; \
	$(BIN)/python -P -m tests.fuzz --seed $(SEED) --inputs $(INPUTS) --jobs $(JOBS)

ROUNDS := 1
FAULTS :=

CHAOS = -m tests.chaos --seed $(SEED) --faults "$(FAULTS)" --rounds $(ROUNDS) $(if $(OUT),--out $(OUT))

chaos: $(VENV)/.development $(KAFKA_CLASSES)  ## Faults on real brokers, Redis and workers: SEED=, FAULTS=names or groups, ROUNDS=, OUT=file.
	$(BIN)/python $(CHAOS)

chaos-compiled: compile $(KAFKA_CLASSES)  ## The same faults, on workers of the compiled build.
	@export PYTHONPATH="$(CURDIR)/$(COMPILED):$(CURDIR)" PYTHONSAFEPATH=1; \
	$(BIN)/python -c 'from streams.cli import build; assert build.is_compiled()' && $(BIN)/python $(CHAOS)

test-shared: compiled  ## Run the tests that read the real captures in ../shared, where they are.
	$(BIN)/python -m pytest -m shared
	@test ! -e $(COMPILED)/.done || CHECK_COMPILED=1 $(BIN)/python -m pytest -m shared \
		-o pythonpath="$(COMPILED) ." $(CORE_TESTS) tests/codec $(LIBRARY_TESTS)

COMPILED := build/compiled
# What calls the compiled modules, once with a real Kafka. Commands run the pure ones.
CORE_TESTS := $(addprefix tests/core/,derivation projection conversation test_late_answers.py test_until_compaction.py)
LIBRARY_TESTS := $(patsubst %,tests/library/test_%.py,containers message_shapes privacy publisher_agent shorten)
TESTS_OF_COMPILED := tests/test_compiled.py $(CORE_TESTS) tests/codec $(LIBRARY_TESTS) tests/flow/test_derive.py \
	tests/flow/test_derive_dead_letters.py tests/flow/test_partition_state.py \
	tests/flow/test_fold_views.py tests/flow/test_local_view.py tests/flow/test_view_processes.py \
	tests/flow/test_project_leaving.py tests/flow/test_project_models.py \
	tests/flow/test_project_partition.py tests/edge/test_redis_views.py \
	tests/edge/test_encoded_batches.py tests/edge/test_fetching.py tests/edge/test_foreign_names.py \
	tests/edge/test_kafka_client.py tests/edge/test_zstd.py tests/edge/test_unpacking.py \
	tests/contract/test_log.py tests/flow/test_unreadable_batches.py tests/flow/test_hostile_batches.py \
	tests/flow/test_replay.py tests/flow/test_resting_sessions.py tests/flow/test_restoring.py \
	tests/flow/test_derive_kafka.py::test_records_equal_direct_derivation_across_restarts
SOURCES := hatch_build.py pyproject.toml $(shell find contextgauge schemas streams -type f -not -name '*.pyc')

# Never next to the sources: a stale library there would hide what is edited.
$(COMPILED)/.done: $(SOURCES)
	@$(BIN)/python hatch_build.py
	@rm -rf $(COMPILED) build/wheel
	@echo "compile: the workers' hot modules, into $(COMPILED): a minute"
	@CONTEXTGAUGE_COMPILE=1 CONTEXTGAUGE_WITHOUT_CHARTS=1 $(BIN)/hatchling build -t wheel -d build/wheel
	@$(BIN)/python -m zipfile -e build/wheel/*.whl $(COMPILED)
	@touch $@

compile: setup $(COMPILED)/.done  ## Make build/compiled: the product with its hot modules compiled.

# Each allocation is the sanitizer's, and the library's shifts are those of Python's own build.
SANITIZED := build/sanitized
SANITIZER_LIBRARIES := libasan.so libubsan.so
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
$(SANITIZED)/.done: $(SOURCES)
	@$(BIN)/python hatch_build.py
	@for library in $(SANITIZER_LIBRARIES); do test -e "$$(gcc -print-file-name=$$library)" || \
		{ echo "sanitize: gcc's $$library is missing (Debian, Ubuntu: gcc)" >&2; exit 1; }; done
	@rm -rf $(SANITIZED)
	@echo "sanitize: the compiled modules with checks of each access, into $(SANITIZED): some minutes"
	@CC=gcc CFLAGS="-g -fwrapv $(SANITIZERS)" LDFLAGS="$(SANITIZERS)" CONTEXTGAUGE_COMPILE=1 \
		CONTEXTGAUGE_WITHOUT_CHARTS=1 $(BIN)/hatchling build -t wheel -d $(SANITIZED)/wheel
	@$(BIN)/python -m zipfile -e $(SANITIZED)/wheel/*.whl $(SANITIZED)
	@touch $@

# test_compiled.py says that it is this build; what starts programs of its own is not in it.
TESTS_OF_SANITIZED := tests/test_compiled.py tests/codec $(CORE_TESTS) tests/edge/test_encoded_batches.py \
	tests/edge/test_fetching.py tests/flow/test_partition_state.py tests/flow/test_fold_views.py \
	tests/flow/test_project_partition.py tests/flow/test_local_view.py
sanitize: setup $(SANITIZED)/.done  ## Tests and generated inputs, with every memory access of the compiled modules checked (gcc).
	@export LD_PRELOAD="$$(gcc -print-file-name=libasan.so):$$(gcc -print-file-name=libubsan.so)" \
		PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1; \
	CHECK_COMPILED=1 $(BIN)/python -m pytest -s -p no:cacheprovider -o pythonpath="$(SANITIZED) ." \
		$(TESTS_OF_SANITIZED) && \
	PYTHONPATH="$(SANITIZED):." $(BIN)/python -P -m tests.fuzz --seed $(SEED) --inputs 100000 --jobs $(JOBS)

bench/.venv/.done: bench/requirements.lock
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python bench/.venv
	@$(BIN)/uv pip install --quiet --python bench/.venv/bin/python --require-hashes -r $<
	@touch $@

# Without the 380 MB of Claude Code that the wheel of its SDK brings along.
build/frameworks/.done: tests/frameworks/requirements.lock
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/frameworks
	@$(BIN)/uv pip install --quiet --python build/frameworks/bin/python --require-hashes --no-binary claude-agent-sdk -r $<
	@touch $@

# OpenTelemetry's exporters for Node.js. Where they cannot be had, their test is skipped, but in CI.
build/node/.done: tests/frameworks/node/package-lock.json
	@mkdir -p build/node && cp $(<D)/package.json $< build/node/ && \
	{ npm ci --silent --ignore-scripts --prefix build/node && touch $@; } || [ -z "$$CI" ]

frameworks-setup: setup build/frameworks/.done build/node/.done  ## Make build/frameworks: LangChain and others, for the tests of the adapters.

build/spark/.done: tests/e2e/spark/requirements.lock tests/e2e/spark/pom.xml
	@$(BIN)/uv pip install --quiet --target build/spark --require-hashes -r $<
	@mvn -q -B -f tests/e2e/spark/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/build/spark/jars \
		-DincludeArtifactIds=spark-sql-kafka-0-10_2.13,spark-token-provider-kafka-0-10_2.13,kafka-clients,commons-pool2
	@touch $@

spark-setup: setup build/spark/.done  ## Make build/spark: PySpark and its Kafka connector, for their test in test-long.

# OpenHands needs a later Python, and older versions of what others need.
bench/compaction/.venv/.done: bench/compaction/requirements.lock
	@PYENV_VERSION=3.12 $(BIN)/uv venv --quiet --clear --no-python-downloads --python 3.12 bench/compaction/.venv && \
	$(BIN)/uv pip install --quiet --python bench/compaction/.venv/bin/python --require-hashes -r $< && touch $@ || \
		echo "bench: without Python 3.12 the comparison of compactions leaves OpenHands out"

bench-setup: setup bench/.venv/.done bench/compaction/.venv/.done  ## Make what is compared with: bench/.venv, Kafka Streams.
	@$(BIN)/python -c 'from bench.systems import build_java; build_java()'

bench: bench-setup  ## Compare with Quix Streams and Kafka Streams. QUICK=1: at most 5 minutes.
	@if [ -z "$$BENCH_PURE" ]; then \
		if lacking=$$($(BIN)/python hatch_build.py 2>&1); then \
			$(MAKE) --no-print-directory $(COMPILED)/.done; \
		else echo "bench: not compiled: $$lacking"; rm -f $(COMPILED)/.done; fi; fi
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

lock: setup  ## Resolve the dependencies again into the lock files.
	@sh tools/lock.sh

lock-check: setup
	@sh tools/lock.sh --check

audit: setup  ## Look the locked versions up in the published advisories.
	$(BIN)/python -m tools.audit

schemas: setup  ## Write the JSON Schemas of records and views.
	$(BIN)/contextgauge schemas

# Whose tests cover the pure parts (`include` in pyproject.toml). They run apart: measuring costs the
# collection of tests twice its time too.
MEASURED := $(addprefix tests/,core codec library compaction seeds runtimes doctor/test_keying.py flow/test_conversations.py) \
	$(patsubst %,tests/edge/test_%.py,kept_conversations documents service_file session_files) \
	$(patsubst %,tests/flow/control/test_%.py,command_urgency driver_commands rule_guard)

# What takes one core each, side by side: the longest, a single C file, first.
OF_ONE_CORE := compiled types dst $(KAFKA_CLASSES) lint layers dependencies lock-check audit

# A test of services that fails is run once more, and both are reported. Others are not.
check: export SECOND_TRY := 1
check: setup  ## The tests, with coverage and in the compiled build; types, lint, layers, lock files.
	@make --no-print-directory -k -j2 RUNS=500 JOBS=1 $(OF_ONE_CORE)
	@make --no-print-directory check-compiled
	@failed=0; set -x; \
	make --no-print-directory check-measured || failed=1; \
	$(PYTEST) -m "$(CHECKED)" --durations=40 --durations-min=3 $(MEASURED:%=--ignore=%) tests || failed=1; \
	exit $$failed

check-measured: setup
	$(PYTEST) -m "$(CHECKED)" --cov --cov-report= $(MEASURED)
	$(BIN)/coverage report --fail-under=100 --skip-covered

# Where they can be: CI has all that it needs, elsewhere a compiler may be missing. By the plain name
# `make`: a recipe that names it as a variable is run, tests and all, by `make -n` too.
compiled: setup
	@if lacking=$$($(BIN)/python hatch_build.py 2>&1) || [ -n "$$CI" ]; then \
		make --no-print-directory compile; \
	else echo "check: skips the compiled modules: $$lacking"; rm -f $(COMPILED)/.done; fi

check-compiled: compiled
	@test ! -e $(COMPILED)/.done || CHECK_COMPILED=1 $(PYTEST) \
		-m "$(CHECKED)" -o pythonpath="$(COMPILED) ." $(TESTS_OF_COMPILED)

clean:  ## Delete what can be made again: environment, caches, local data.
	rm -rf $(VENV) .stack .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage htmlcov
	rm -rf deploy/kafka $(PAGE) tools/page/node_modules
	rm -rf build bench/.venv bench/compaction/.venv bench/.cache bench/peers/kafka_streams/target
