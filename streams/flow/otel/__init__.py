"""Records to a backend of OpenTelemetry: `exporter.py`."""
