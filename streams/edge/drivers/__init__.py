"""Drivers: how the service asks a runtime to compact a session that it holds itself.

One module per runtime, over the interface that it publishes. A driver never starts a compaction
while a turn runs, since that would end the turn, and reports success only where the runtime shows a
summary; what it cannot see it reports as unknown.
"""
