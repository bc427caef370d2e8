"""Twins of Kafka and Redis in memory: for the demo without services, tests and the simulator.

They behave as the real ones do where the workers could notice: markers occupy offsets, producers
are fenced, groups rebalance, writes compare positions. `tests/contract` runs one suite on both.
"""
