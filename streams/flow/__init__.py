"""The loops, over ports: the same code runs over Kafka and Redis, in memory and in the simulator.

A flow reads, calls the core, and writes with its position; it knows no adapter, and the clock is a
port. After any failure it drops what it holds in memory and trusts only what is stored.
"""
