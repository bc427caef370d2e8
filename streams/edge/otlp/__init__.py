"""OpenTelemetry's own SDK, which only `contextgauge otel` needs."""
