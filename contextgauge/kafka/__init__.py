"""The library's connection to Kafka: credentials, producer, and why a connection failed.

The producer is idempotent and builds its batches itself. `diagnosis.py` tells a wrong setting,
which retrying cannot cure, from an outage. The few private names of aiokafka in use are in
`client.py`.
"""
