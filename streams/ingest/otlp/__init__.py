"""OpenTelemetry over HTTP: what runtimes and SDKs export becomes messages of our topic.

`decoding.py` reads protobuf and JSON by OpenTelemetry's own package, `runtime_events.py` and
`model_calls.py` are what is known of events and spans, `mapping.py` makes messages of them, and
`routes.py` answers as the protocol wants it.
"""
