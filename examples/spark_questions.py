r"""Ask the library of questions of an export on Apache Spark.

    contextgauge query "SELECT * FROM prices" tables > prices.csv
    spark-submit examples/spark_questions.py --tables tables --prices prices.csv totals cost-by-day

Prints a line of JSON for each question: its name, its columns and its rows. Without names, all that
Spark can answer. `prepare` is all that a session of Spark needs for them; it needs `contextgauge`.
"""

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streams.codec.columns import columns_of, tables
from streams.edge.tables.questions import (
    COMPUTED_FIRST,
    Question,
    question,
    questions,
    views_sql,
)

OTHER_WORDS = frozenset({"composition"})
"""Questions with words of DuckDB's own."""

SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.session.timeZone": "UTC",
}
"""The library quotes names as SQL does, and its days and hours are those of UTC."""

TYPES: Mapping[str, str] = {
    "text": "string",
    "json": "string",
    "integer": "bigint",
    "real": "double",
    "truth": "boolean",
    "time": "timestamp",
    "integers": "array<bigint>",
    "texts": "array<string>",
}
"""Types of an export's columns, as Spark names them."""

PRICES = (
    "model string, hour timestamp, service_tier string, above bigint, up_to bigint, "
    "input decimal(18,15), output decimal(18,15), cache_write_5m decimal(18,15), "
    "cache_write_1h decimal(18,15), cache_read decimal(18,15), source string, checked date"
)
"""Columns of the view `prices`: a CSV file has no types, and amounts are exact."""


def prepare(spark: SparkSession, folder: Path, prices: Path) -> None:
    """Make the tables and views of an export in a session: temporary ones, in no catalog.

    A kind of record that an export has none of is an empty table. The view `prices` of the library
    asks Python for each price: here it is read from a file.
    """
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    for kind in tables():
        columns = ", ".join(f"`{each.name}` {TYPES[each.type]}" for each in columns_of(kind))
        own = folder / f"kind={kind}"
        read = spark.read.schema(columns)
        rows = read.parquet(str(own)) if own.is_dir() else spark.createDataFrame([], columns)
        rows.createOrReplaceTempView(kind)
    spark.read.csv(str(prices), header=True, schema=PRICES).createOrReplaceTempView("prices")
    for view in re.sub("--.*", "", views_sql()).split(";"):
        if not view.strip() or "VIEW prices" in view:
            continue
        spark.sql(view.replace("VIEW", "TEMPORARY VIEW", 1))
        name = view.split("VIEW", 1)[1].split()[0]
        if name in COMPUTED_FIRST:
            # Else a plan contains theirs as often as its views use them: too much for a driver.
            spark.table(name).localCheckpoint().createOrReplaceTempView(name)


def answer(spark: SparkSession, asked: Question) -> dict[str, Any]:
    """Return the answer to a question."""
    rows = spark.sql(asked.sql.rstrip(";"))
    return {
        "question": asked.name,
        "columns": rows.columns,
        "rows": list(map(list, rows.collect())),
    }


def main() -> None:
    """Run the job."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=Path, required=True, help="folder of an export as Parquet")
    parser.add_argument("--prices", type=Path, required=True, help="CSV of the view `prices`")
    parser.add_argument("names", nargs="*", help="questions")
    given = parser.parse_args()
    asked = [question(each) for each in given.names] or [
        each for each in questions() if each.name not in OTHER_WORDS
    ]
    spark = SparkSession.builder.appName("contextgauge questions").getOrCreate()
    try:
        prepare(spark, given.tables, given.prices)
        for each in asked:
            print(json.dumps(answer(spark, each), default=str))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
