r"""Derive a range of `agent.messages` again on Apache Spark: the same records as the deriver's.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 \
        examples/spark_backfill.py --bootstrap-servers localhost:9092 --to records

Reads the topic between offsets, only what is committed, and runs the product's own pure derivation
in Spark's Python workers, which need `contextgauge[pipeline]`. Writes Parquet, `kind=…/*.parquet`:
the session, the place of the message, and each record as a structured CloudEvent, byte for byte
what `contextgauge replay` prints.

The rules are those of the deriver with the same environment: the job reads `CONTEXTGAUGE_WINDOWS`,
`CONTEXTGAUGE_WARNING_THRESHOLDS` and the others where it is submitted. A session's messages lie in
one partition of the topic, in order, so each partition is derived as a whole. Without `--starting`
and `--ending` the range is all that the partitions have as the job begins: what `--starting` leaves
out of a session is missing in its state, as after a rebuild from there.
"""

import argparse
import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from contextgauge.kafka.options import KafkaOptions
from streams import codec, wiring
from streams.core.derivation.rules_config import Rules
from streams.edge.kafka.log import KafkaLog
from streams.flow.dead_letters.letters import misrouted_check
from streams.flow.derive.deriver import Deriver, input_message
from streams.ports import LogRecord

SCHEMA = StructType(
    [
        StructField("session_id", StringType(), nullable=False),
        StructField("kind", StringType(), nullable=False),
        StructField("topic_partition", IntegerType(), nullable=False),
        StructField("topic_offset", LongType(), nullable=False),
        StructField("place", IntegerType(), nullable=False),
        StructField("event", StringType(), nullable=False),
    ]
)
_OFFSETS = 'as JSON, {"agent.messages": {"0": 99}}'
_CREATED = 0
"""Kafka's timestamp type of a producer's clock (CreateTime)."""


def messages(
    spark: SparkSession, servers: str, topic: str, starting: str, ending: str
) -> DataFrame:
    """Return the committed messages of a topic between offsets: JSON, `earliest` or `latest`."""
    source = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    source = source.option("subscribe", topic).option("includeHeaders", "true")
    source = source.option("kafka.isolation.level", "read_committed")
    return source.option("startingOffsets", starting).option("endingOffsets", ending).load()


async def partition_count(servers: str, topic: str) -> int:
    """Return how many partitions a topic has."""
    log = KafkaLog(KafkaOptions(servers))
    try:
        count = (await log.partition_counts([topic]))[topic]
    finally:
        await log.stop()
    if count is None:
        raise SystemExit(f"{servers} has no topic {topic}")
    return count


def derived(read: DataFrame, partitions: int, rules: Rules) -> DataFrame:
    """Return the records of the messages by these rules, with `SCHEMA`."""
    columns = ["partition", "offset", "timestampType", "key", "value", "headers"]
    rows = read.selectExpr(*columns, "unix_millis(timestamp) AS timestamp_ms")
    ordered = rows.repartition(partitions, "partition").sortWithinPartitions("partition", "offset")

    def derive(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition, deriver = -1, Deriver(rules)
        schema = pa.schema(
            {
                "session_id": "string",
                "kind": "string",
                "topic_partition": "int32",
                "topic_offset": "int64",
                "place": "int32",
                "event": "string",
            }
        )
        for batch in batches:
            made: list[dict[str, Any]] = []
            for row in batch.to_pylist():
                if row["partition"] != partition:
                    partition = row["partition"]
                    deriver = Deriver(rules, misrouted_check(partition, partitions))
                made += _rows(deriver, row)
            deriver.end_steps()
            yield pa.RecordBatch.from_pylist(made, schema)

    return ordered.mapInArrow(derive, SCHEMA)


def _rows(deriver: Deriver, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
    is_created = row["timestampType"] == _CREATED
    message = LogRecord(
        row["offset"], row["timestamp_ms"], row["key"], row["value"], headers, is_created
    )
    for place, record in enumerate(deriver.derive(input_message(message)).records):
        yield {
            "session_id": record.data.session_id,
            "kind": record.kind,
            "topic_partition": row["partition"],
            "topic_offset": row["offset"],
            "place": place,
            "event": codec.to_structured(record).decode(),
        }


def main() -> None:
    """Run the job."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", default="agent.messages")
    parser.add_argument("--starting", default="earliest", help=_OFFSETS)
    parser.add_argument("--ending", default="latest", help=_OFFSETS)
    parser.add_argument("--to", required=True, help="folder or URL that Spark can write")
    given = parser.parse_args()
    for offsets in (given.starting, given.ending):
        if offsets not in {"earliest", "latest"}:
            json.loads(offsets)  # a clear error before the job begins
    rules = wiring.rules(wiring.settings())
    spark = SparkSession.builder.appName("contextgauge backfill").getOrCreate()
    try:
        read = messages(spark, given.bootstrap_servers, given.topic, given.starting, given.ending)
        partitions = asyncio.run(partition_count(given.bootstrap_servers, given.topic))
        result = derived(read, partitions, rules)
        result.write.mode("error").partitionBy("kind").parquet(given.to)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
