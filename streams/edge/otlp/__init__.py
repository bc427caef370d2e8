"""A backend of OpenTelemetry, over its own SDK, which retries and has variables of its own."""
