"""Records to a backend of OpenTelemetry: `otel_worker.py`."""
