"""Kafka and Redis on this machine, for development, tests and the demo.

A process is ended by its pid and start time, never by a name: what was not started here is left
alone.
"""
