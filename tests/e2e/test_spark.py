"""The Spark job of `examples/` gives the deriver's records, and Spark and DuckDB read an export."""

import asyncio
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contextgauge.kafka.options import KafkaOptions
from contextgauge.window_catalog import bundled
from streams.core.derivation.rules_config import Rules
from streams.edge.kafka.log import KafkaLog
from streams.edge.tables.questions import questions
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


async def derive(servers: str, prefix: str, rules: Rules) -> list[str]:
    """Publish messages, derive them, and return the log's records as structured events."""
    log = KafkaLog(KafkaOptions(servers))
    kit = DeriveKit(log, prefix)
    kit.rules = rules
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
    rules = Rules(bundled(), thresholds=(50, 90), content=True)
    own = {"WARNING_THRESHOLDS": "50,90", "CONTENT_RECORDS": "true"}
    ids = asyncio.run(derive(kafka, prefix, rules))
    settings = {"BOOTSTRAP_SERVERS": kafka, "TOPIC_PREFIX": prefix, "GROUP_PREFIX": prefix}
    live = command("replay", "--topic", "records", **settings).stdout.splitlines()
    assert len(live) == len(ids) > 100
    folder = tmp_path / "records"
    topic = f"{prefix}agent.messages"
    environment = [f"CONTEXTGAUGE_{name}={value}" for name, value in own.items()]
    ran(
        [*spark[:1], *environment, *spark[1:]],
        ROOT / "examples" / "spark_backfill.py",
        *("--bootstrap-servers", kafka, "--topic", topic, "--to", str(folder)),
        # -2 is the first offset of a partition.
        *("--starting", json.dumps({topic: {str(each): -2 for each in range(4)}})),
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
    lines = ran(spark, program, str(folder)).splitlines()
    shown = [json.loads(line) for line in lines if line.startswith("[")]  # Spark warns there too
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
    program = ROOT / "examples" / "spark_questions.py"
    shown = ran(spark, program, "--tables", str(folder), "--prices", str(prices))
    answers = [json.loads(line) for line in shown.splitlines() if line.startswith('{"question"')]
    unasked = {each.name for each in questions()} - {each["question"] for each in answers}
    assert unasked == {"composition"}  # EXPORT.md names it
    for each in answers:
        name, columns = each["question"], each["columns"]
        done = command("query", "--format", "ndjson", name, str(folder))
        ours = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(each["rows"]) == len(ours), name
        for theirs, own in zip(each["rows"], ours, strict=True):
            assert list(own) == columns
            for column, one, other in zip(columns, theirs, own.values(), strict=True):
                assert _are_alike(column, one, other), (name, column, one, other)


def _are_alike(column: str, one: Any, other: Any) -> bool:
    """Return whether cells say the same: counts exactly, amounts as Spark rounds products.

    What a question rounds may differ in its last digit: 69.55 is a little less in binary, which
    Spark rounds as it is written, and DuckDB as it is.
    """
    if one is None or other is None or isinstance(one, bool):
        return one is other
    if column.endswith("_usd"):
        return math.isclose(float(one), float(other), rel_tol=1e-5, abs_tol=1e-5)
    if isinstance(other, float):  # Spark has some of them as decimals, which are text in JSON
        own = float(one)
        last_digit = 10.0 ** -max(len(repr(each).partition(".")[2]) for each in (own, other))
        return math.isclose(own, other, rel_tol=1e-9, abs_tol=1.001 * last_digit)
    return bool(_in_one_form(one) == _in_one_form(other))


def _in_one_form(value: Any) -> Any:
    """Return a time without its zone, and anything else as it is."""
    if isinstance(value, str):
        value = re.sub(r"(\d)T(\d)", r"\1 \2", value).removesuffix("Z")
        value = re.sub(r"(:\d\d\.\d*?)0+$", r"\1", value).removesuffix(".")
    return value
