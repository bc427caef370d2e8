"""The Spark job of `examples/` gives the deriver's records, and Spark and DuckDB read an export."""

import asyncio
import json
import math
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from contextgauge.kafka.options import KafkaOptions
from streams.codec.columns import columns_of, tables
from streams.edge.kafka.log import KafkaLog
from streams.edge.tables.questions import questions, views_sql
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

ASK = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
folder, asked = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
for kind, columns in asked["tables"].items():
    own = folder / f"kind={kind}"
    rows = spark.read.schema(columns).parquet(str(own)) if own.is_dir() else None
    (spark.createDataFrame([], columns) if rows is None else rows).createOrReplaceTempView(kind)
prices = spark.read.csv(asked["prices"], header=True, schema=asked["columns_of_prices"])
prices.createOrReplaceTempView("prices")
for view in asked["views"]:
    spark.sql(view)
for name, sql in asked["questions"].items():
    print(json.dumps([name, [list(row) for row in spark.sql(sql).collect()]], default=str))
"""
"""How the library is asked in Spark: as EXPORT.md says."""

SPARK_TYPES = {
    "text": "string",
    "json": "string",
    "integer": "bigint",
    "real": "double",
    "truth": "boolean",
    "time": "timestamp",
    "integers": "array<bigint>",
    "texts": "array<string>",
}
SPARK_HAS_OTHER_WORDS = {"composition"}
"""Questions with words of DuckDB's own; EXPORT.md names them."""


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


def test_the_library_of_questions_has_the_same_answers_on_spark(
    command: Command, spark: list[str], tmp_path: Path
) -> None:
    command("simulate", "--sample", "--out", str(tmp_path / "projects"))
    folder = tmp_path / "tables"
    assert command("export", str(tmp_path / "projects"), "--to", str(folder)).returncode == 0
    prices = tmp_path / "prices.csv"
    prices.write_text(command("query", "SELECT * FROM prices", str(folder)).stdout)
    views = re.sub("--.*", "", views_sql()).split(";")
    asked = {
        "tables": {
            kind: ", ".join(f"`{each.name}` {SPARK_TYPES[each.type]}" for each in columns_of(kind))
            for kind in tables()
        },
        "prices": str(prices),
        "columns_of_prices": "model string, hour timestamp, service_tier string, above bigint, "
        "up_to bigint, input decimal(18,15), output decimal(18,15), cache_write_5m decimal(18,15), "
        "cache_write_1h decimal(18,15), cache_read decimal(18,15), source string, checked date",
        "views": [
            each.replace("VIEW", "TEMPORARY VIEW", 1)
            for each in views
            if each.strip() and "VIEW prices" not in each
        ],
        "questions": {
            each.name: each.sql.rstrip(";")
            for each in questions()
            if each.name not in SPARK_HAS_OTHER_WORDS
        },
    }
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    (tmp_path / "ask.py").write_text(ASK)
    shown = ran(spark, tmp_path / "ask.py", str(folder), str(tmp_path / "asked.json"))
    answers = dict(json.loads(line) for line in shown.splitlines() if line.startswith('["'))
    assert len(answers) == len(asked["questions"]) > 40
    for name, rows in answers.items():
        done = command("query", "--format", "ndjson", name, str(folder))
        ours = [list(json.loads(line).values()) for line in done.stdout.splitlines()]
        assert len(rows) == len(ours), name
        for theirs, own in zip(rows, ours, strict=True):
            assert all(map(_are_alike, theirs, own)), (name, theirs, own)


def _are_alike(one: Any, other: Any) -> bool:
    """Return whether cells say the same; Spark rounds products of decimals, and halves upwards."""
    one, other = _same(one), _same(other)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=0.002)
    return bool(one == other)


def _same(value: Any) -> Any:
    """Return a cell of an answer in one form: amounts as numbers, times without their zone."""
    if isinstance(value, str):
        value = re.sub(r"(\d)T(\d)", r"\1 \2", value).removesuffix("Z")
        value = re.sub(r"(:\d\d\.\d*?)0+$", r"\1", value).removesuffix(".")
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value)
    return value
