"""Commands that run until they are stopped: settings, logs, metrics, probes, signals, processes."""
