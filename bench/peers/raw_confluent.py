"""A limit, not a peer: consume, decode, produce on confluent-kafka, without any guarantee.

python -m bench.peers.raw_confluent BOOTSTRAP IN OUT GROUP RECORDS_PER_MESSAGE RECORD_BYTES
"""

import sys
import time

import orjson
from confluent_kafka import Consumer, Producer

from bench.peers.filler import HEADERS, filler

_COMMIT_S = 0.2
"""How often the position is committed: the harness measures by it."""


def main() -> None:
    """Run until stopped."""
    bootstrap, source, target, group, ratio_text, size = sys.argv[1:]
    ratio, value, due = float(ratio_text), filler(int(size)), 0.0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    consumer.subscribe([source])
    committed = time.monotonic()
    is_news = False
    while True:
        for message in consumer.consume(2_000, timeout=0.1):
            content = message.value()
            if content is None:
                continue
            orjson.loads(content)
            is_news = True
            due += ratio
            while due >= 1.0:
                due -= 1.0
                key, partition = message.key(), message.partition()
                while True:
                    try:
                        producer.produce(target, value, key, partition, headers=HEADERS)
                        break
                    except BufferError:
                        producer.poll(0.01)
            producer.poll(0)
        if is_news and time.monotonic() - committed > _COMMIT_S:
            consumer.commit(asynchronous=True)
            committed, is_news = time.monotonic(), False


if __name__ == "__main__":
    main()
