"""The outside world: Kafka, Redis, SQLite, files, webhooks and runtimes, each behind a port.

The only IO of the pipeline. Each adapter has a twin in `memory` or in `tests/doubles`, which passes
the same suite in `tests/contract`. Foreign errors become those of `contextgauge/errors.py`, named
by the reaction that they demand. `streams/wiring` chooses among the adapters; nothing else does.
"""
