"""Records to a backend of OpenTelemetry, at least once, under the same ids.

A batch of records becomes events and figures (`streams/codec/otel_events.py`,
`streams/codec/otel_figures.py`); its offsets are acknowledged once the backend has taken it. After
a rebalance or a crash a batch may be sent twice.
"""
