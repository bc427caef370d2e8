"""The same derivation on Quix Streams, exactly-once.

python -m bench.peers.quix BOOTSTRAP IN OUT GROUP RULES STATE_FOLDER
"""

import os
import sys

import orjson
from quixstreams import Application, message_context
from quixstreams.models.serializers import Serializer
from quixstreams.state import State

from bench.peers.quix.derivation import derive

COMMIT_INTERVAL_S = float(os.environ.get("BENCH_QUIX_COMMIT_S", "0.5"))
"""Quix's own default is 5 s, for which every record would wait; half a second costs nothing."""


class Written(Serializer):  # type: ignore[misc]  # untyped where Quix is not installed
    """A record is made into bytes where it is derived; its headers travel with it."""

    def __call__(self, value: tuple[list[tuple[str, bytes]], bytes], ctx: object) -> bytes:
        """Return the bytes."""
        del ctx
        return value[1]


def main() -> None:
    """Run until stopped."""
    bootstrap, source, target, group, rules, folder = sys.argv[1:]
    app = Application(
        broker_address=bootstrap,
        consumer_group=group,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=COMMIT_INTERVAL_S,
        state_dir=folder,
        use_changelog_topics=True,
        loglevel="WARNING",
    )
    messages = app.topic(source, key_deserializer="bytes", value_deserializer="bytes")
    records = app.topic(target, key_serializer="bytes", value_serializer=Written())
    tag, topic = rules.encode(), source.encode()

    def process(
        value: bytes, key: bytes, timestamp: int, headers: object, state: State
    ) -> list[tuple[list[tuple[str, bytes]], bytes]]:
        del headers  # every message of the workload is marked as seen live
        session_id = key.decode()
        derived = derive(state.get_bytes("s"), value, session_id, timestamp)
        if derived is None:
            return []
        state.set_bytes("s", derived.state)
        if not derived.records:
            return []
        context = message_context()
        same = [
            ("ce_specversion", b"1.0"),
            ("ce_source", b"/sessions/" + key),
            ("ce_rules", tag),
            ("content-type", b"application/json"),
            ("src_topic", topic),
            ("src_partition", b"%d" % context.partition),
            ("src_offset", b"%d" % context.offset),
            ("src_timestamp", b"%d" % timestamp),
        ]
        if derived.time is not None:
            same.append(("ce_time", derived.time.encode()))
        return [
            (
                [
                    ("ce_id", record.record_id.encode()),
                    ("ce_type", f"contextgauge.{record.kind}.v1".encode()),
                    ("ce_subject", record.subject.encode()),
                    ("ce_sequence", b"%d" % number),
                    *same,
                ],
                orjson.dumps(record.data),
            )
            for number, record in enumerate(derived.records, derived.sequence)
        ]

    stream = app.dataframe(messages)
    stream = stream.apply(process, stateful=True, expand=True, metadata=True)
    stream = stream.set_headers(lambda value, *_: value[0])
    stream.to_topic(records)
    app.run()


if __name__ == "__main__":
    main()
