"""Metrics and probes of a worker, served by a thread of their own.

A blocked event loop must not silence the probe that reports it, so `server.py` answers from what
the loop has noted. `metric_catalog.py` is the closed list of names.
"""
