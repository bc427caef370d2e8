"""Kafka: readers, transactions, topics, and a look at a cluster for the doctor.

All reads are `read_committed`; offsets have gaps where markers of transactions stand. Positions are
stored with the results, not in groups. `transactions.py` writes with one transactional id for each
partition, which fences the former owner when a new one starts.
`membership.py` compares configurations within a group. `unpacking.py` bounds what a batch may
unpack to. Where aiokafka lacks a request, `topic_ids.py`, `open_transactions.py` and `versions.py`
encode it. Connections and the producer of messages are in `contextgauge/kafka/`.
"""
