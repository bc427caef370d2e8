"""The Spark job of `examples/` gives the deriver's records, and Spark and DuckDB read an export."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contextgauge.kafka.options import KafkaOptions
from streams.edge.kafka.log import KafkaLog
from tests.commands import Command
from tests.flow.derive_kit import DeriveKit, samples
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
SPARK = ROOT / "build" / "spark"
"""PySpark and its Kafka connector, made by `make spark-setup`."""

pytestmark = pytest.mark.long

READ_EXPORT = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").getOrCreate()
for kind in ("context_reading", "compact_boundary", "tool_use"):
    table = spark.read.parquet(f"{sys.argv[1]}/kind={kind}")
    types = sorted((each.name, each.dataType.simpleString()) for each in table.schema)
    first = table.selectExpr("count(*) AS n", "count(DISTINCT id) AS ids", "sum(sequence) AS s")
    print(json.dumps([kind, first.collect()[0].asDict(), types]))
"""


@pytest.fixture
def spark(tmp_path: Path) -> list[str]:
    """How a Python program of Spark is run; its workers have this environment's packages."""
    if not (SPARK / "pyspark").is_dir():
        if os.environ.get("CI"):
            pytest.fail("no PySpark: run `make spark-setup`")
        pytest.skip("no PySpark: `make spark-setup` fetches it")
    jars = ",".join(str(each) for each in sorted((SPARK / "jars").glob("*.jar")))
    path = os.pathsep.join((str(SPARK), str(ROOT)))
    return [
        "env",
        f"PYTHONPATH={path}",
        f"PYSPARK_PYTHON={sys.executable}",
        f"SPARK_LOCAL_DIRS={tmp_path / 'spark'}",
        str(SPARK / "pyspark" / "bin" / "spark-submit"),
        *("--master", "local[2]", "--jars", jars, "--conf", "spark.ui.enabled=false"),
    ]


def ran(spark: list[str], program: Path, *arguments: str) -> str:
    done = subprocess.run(
        [*spark, str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 10,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3_000:]
    return done.stdout


async def derive(servers: str, prefix: str) -> list[str]:
    """Publish messages, derive them, and return the log's records as structured events."""
    log = KafkaLog(KafkaOptions(servers))
    kit = DeriveKit(log, prefix)
    await kit.create_topics()
    try:
        await kit.publish(samples(3))
        await kit.run_until_caught_up()
        return [record.id for part in await kit.events() for record in part]
    finally:
        await log.stop()


def test_a_backfill_gives_the_derivers_records_byte_for_byte(
    kafka: str, prefix: str, command: Command, spark: list[str], tmp_path: Path
) -> None:
    ids = asyncio.run(derive(kafka, prefix))
    settings = {"BOOTSTRAP_SERVERS": kafka, "TOPIC_PREFIX": prefix, "GROUP_PREFIX": prefix}
    live = command("replay", "--topic", "records", **settings).stdout.splitlines()
    assert len(live) == len(ids) > 100
    folder = tmp_path / "records"
    ran(
        spark,
        ROOT / "examples" / "spark_backfill.py",
        *("--bootstrap-servers", kafka, "--topic", f"{prefix}agent.messages"),
        *("--to", str(folder)),
    )
    import duckdb  # noqa: PLC0415 -- of the extra `analysis`

    rows = duckdb.read_parquet(f"{folder}/*/*.parquet").project("event").fetchall()
    assert sorted(event for (event,) in rows) == sorted(live)


def test_spark_and_duckdb_read_the_same_of_an_export(
    command: Command, spark: list[str], tmp_path: Path
) -> None:
    command("simulate", "--sample", "--out", str(tmp_path / "projects"))
    folder = tmp_path / "tables"
    assert command("export", str(tmp_path / "projects"), "--to", str(folder)).returncode == 0
    program = tmp_path / "read.py"
    program.write_text(READ_EXPORT)
    shown = [json.loads(line) for line in ran(spark, program, str(folder)).splitlines()]
    assert len(shown) == 3
    for kind, figures, types in shown:
        question = (
            f"FROM {kind} SELECT count(*) AS n, count(DISTINCT id) AS ids, sum(sequence) AS s"
        )
        done = command("query", "--format", "ndjson", question, str(folder))
        assert json.loads(done.stdout) == figures
        assert dict(types)["id"] == "string"
        assert dict(types)["sequence"] == "bigint"
        assert dict(types)["time"] == "timestamp"
