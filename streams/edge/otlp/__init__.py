"""OpenTelemetry's own SDK, which only `contextgauge export` needs."""
