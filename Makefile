# Strandline. On a fresh machine `make demo` or `make test` is all there is to type.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

WITH := source scripts/env.sh;
FILES ?= tests/golden
ENGINE ?= spark

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: ## all that the project needs, into .venv and .airflow; quick when nothing changed (ENGINE=sail: without Java)
	@bash scripts/setup.sh

.PHONY: project
project: # without .airflow, which no check and no test reads
	@bash scripts/setup.sh project

.PHONY: demo
demo: setup ## the flights of 2013: landing, daily backfill, reprocessing and report through Airflow (ENGINE=sail: without Java)
	@$(WITH) bash scripts/demo.sh

.PHONY: up
up: setup ## Airflow with its UI on 127.0.0.1, over the flights (PORT=8080)
	@$(WITH) python jobs/land_flights.py
	@PORT=$(PORT) bash scripts/up.sh

.PHONY: test
test: check ## all checks, then all tests
	@$(WITH) bash scripts/test.sh

.PHONY: test-spark
test-spark: check ## all checks, then all tests with everything on Apache Spark, and all goldens
	@$(WITH) ENGINE=spark bash scripts/test.sh

.PHONY: test-deep
test-deep: setup ## the laws, drawn anew (SEED=…, EXAMPLES=5000 of the pure ones, ROUNDS=5 on Spark)
	@$(WITH) EXAMPLES="$(EXAMPLES)" ROUNDS="$(ROUNDS)" SEED="$(SEED)" bash scripts/test_deep.sh

.PHONY: test-fast
test-fast: project ## the tests without Spark and Airflow, in under a minute; laws draw few examples
	@$(WITH) QUICK=1 pytest -n 2 tests/unit tests/figures tests/airflow -m 'not airflow and not slow'

.PHONY: test-kill
test-kill: setup ## runs killed at every commit and at many files, raced, on full disks, over bad rows (KILLS=50)
	@$(WITH) KILLS=$(or $(KILLS),50) ROUNDS=$(or $(ROUNDS),1) pytest \
	    tests/system/test_{kills,races,broken_worlds,bad_rows}.py

.PHONY: test-years
test-years: setup ## a year of a pipeline, a day at a time: late days, edits, kills, retention (DAYS=365 SEED=1)
	@$(WITH) DAYS="$(or $(DAYS),365)" SEED="$(or $(SEED),1)" pytest tests/spark/pipeline/test_years.py

.PHONY: test-adopt
test-adopt: setup ## the wheel in a clean environment and a strange Airflow: a day on Sail without Java, and on Spark; then a cluster with what strandline package makes (needs the network)
	@$(WITH) bash scripts/adopt.sh
	@$(WITH) pytest -m adopt tests/system/test_packed.py

.PHONY: test-versions
test-versions: setup ## the same with the lowest and the newest versions that pyproject.toml allows, and a table of them (needs the network)
	@$(WITH) bash scripts/adopt.sh lowest newest

.PHONY: test-stores
test-stores: setup ## lakes on object stores that run as processes: races, kills, secrets (KILLS=20 SCHEDULES=1000; the first time needs the network)
	@$(WITH) python scripts/fetch_stores.py
	@$(WITH) KILLS=$(or $(KILLS),20) SCHEDULES=$(or $(SCHEDULES),1000) pytest \
	    tests/unit/lake/test_terms.py tests/system/test_object_store.py

.PHONY: check
check: project ## ruff, mypy strict, import-linter
	@$(WITH) ruff check .
	@$(WITH) ruff format --check .
	@$(WITH) mypy --num-workers auto || { [[ $$? == 2 ]] && mypy; } # 2: a worker came too late on a busy machine
	@$(WITH) PYTHONPATH=jobs:plugins lint-imports

.PHONY: format
format: setup ## format the code and mend what ruff can mend
	@$(WITH) ruff check --fix --exit-zero .
	@$(WITH) ruff format .

.PHONY: conformance
conformance: setup ## Flink's scenarios through the engine (FILES=tests/golden ENGINE=spark|connect|sail|reference)
	@$(WITH) strandline conformance $(FILES) --engine $(ENGINE)

.PHONY: bench
bench: setup ## the engine beside plain Spark (ROWS=20000000 WINDOWS="tumbling sliding session" ENGINE=sail)
	@$(WITH) python benchmarks/bench.py --engine $(ENGINE) $(if $(ROWS),--rows $(ROWS)) $(if $(WINDOWS),--windows $(WINDOWS))

.PHONY: bench-model
bench-model: setup ## triggers and joins beside the same without, or plain Spark (ROWS=5000000 LINES="continuous count function join advise" ENGINE=sail)
	@$(WITH) python benchmarks/bench_model.py --engine $(ENGINE) $(if $(ROWS),--rows $(ROWS)) $(if $(LINES),--lines $(LINES))

.PHONY: bench-growth
bench-growth: setup ## one more day after a long history, beside that day alone (HISTORY="1 30 365" CHANNELS=64)
	@$(WITH) STRANDLINE_ENGINE=$(ENGINE) python benchmarks/bench_growth.py $(if $(HISTORY),--history $(HISTORY)) $(if $(CHANNELS),--channels $(CHANNELS)) \
	    $(if $(ROWS),--rows $(ROWS)) $(if $(WINDOWS),--windows $(WINDOWS)) $(if $(PAIRS),--pairs $(PAIRS))

.PHONY: lock
lock: setup ## requirements.lock anew from pyproject.toml, and the hashes of Delta's jars (needs the network)
	@$(WITH) uv pip compile --quiet --no-emit-index-url --no-emit-find-links --generate-hashes --universal \
	    --python-version 3.11 --all-extras --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade) \
	    --output-file requirements.lock pyproject.toml
	@$(WITH) python scripts/fetch_jars.py --lock

.PHONY: clean
clean: ## remove .venv, .airflow and the caches; the lake stays
	@rm -rf .venv .airflow .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache \
	    build spark-warehouse metastore_db derby.log jobs/*.egg-info
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
