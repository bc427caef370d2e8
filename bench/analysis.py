"""What analysts do with millions of messages: derive them again, export them, ask questions.

    python -m bench.analysis [--messages 10000000] [--topic-messages 1000000] [--runs 1]

Simulated transcripts are written into a temporary folder, or kept in a `--folder`: 10 million
messages are 17 GB. The peers do less than the job, and so are floors: DuckDB scans the same JSON
and sums one figure of usage; `kcat | jq` reads the same topic and keeps one field of each message.
Each case is a process of its own, from its start on. CPU time and peak memory are those of all its
processes. The records of an export and of a replay must be as many, as must the messages of the
topic and of the files. The last line is one object of JSON.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

from bench.process import cost, load
from bench.systems import ROOT, our_environment
from schemas.records import Kind, ToolUse, UserTurn
from streams.edge.local_stack.stack import LocalStack

_LOOK_S: Final = 0.2
_PARTITIONS: Final = 4

_SCAN: Final = """
import sys, duckdb
found = duckdb.sql(f'''
    SELECT count(*), sum(TRY_CAST(json ->> '$.message.usage.input_tokens' AS BIGINT))
    FROM read_ndjson_objects('{sys.argv[1]}/**/*.jsonl', maximum_object_size = 67108864,
        ignore_errors = true)
''').fetchall()[0]
print(found[0])
"""


@dataclass(frozen=True)
class Outcome:
    """One run: wall and CPU seconds, peak memory in MiB, and how much it printed."""

    elapsed_s: float
    cpu_s: float
    peak_mib: float
    lines: int
    last: str


def _run(*command: str, environment: dict[str, str]) -> Outcome:
    """Run a command; its output is read and counted. Raises AssertionError where it fails."""
    began_s = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    peak_mib, cpu_s, ended = 0.0, 0.0, threading.Event()

    def look() -> None:
        nonlocal peak_mib, cpu_s
        while not ended.wait(_LOOK_S):
            now = cost(process.pid)
            peak_mib, cpu_s = max(peak_mib, now.peak_mib), max(cpu_s, now.cpu_s)

    looking = threading.Thread(target=look)
    looking.start()
    lines, last = 0, b""
    for last in process.stdout or ():  # noqa: B007 -- the last one is kept
        lines += 1
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    ended.set()
    looking.join()
    if process.returncode:
        raise AssertionError(f"exit code {process.returncode}: {' '.join(command)}")
    elapsed_s = time.perf_counter() - began_s
    cpu_s = max(cpu_s, used.ru_utime + used.ru_stime)
    return Outcome(elapsed_s, cpu_s, peak_mib, lines, last.decode(errors="replace").strip())


@dataclass
class Measured:
    """The runs of one case over so many messages."""

    name: str
    messages: int
    outcomes: list[Outcome]

    def figures(self) -> dict[str, Any]:
        """Return the medians."""
        elapsed_s, cpu_s = (
            statistics.median(getattr(each, name) for each in self.outcomes)
            for name in ("elapsed_s", "cpu_s")
        )
        return {
            "case": self.name,
            "messages": self.messages,
            "messages_per_s": round(self.messages / elapsed_s),
            "elapsed_s": round(elapsed_s, 1),
            "cpu_s_per_million": round(cpu_s / self.messages * 1e6, 1),
            "peak_mib": round(max(each.peak_mib for each in self.outcomes)),
        }


def _ours(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "streams", *words)


def write_messages(folder: Path, messages: int, environment: dict[str, str]) -> None:
    """Write simulated transcripts, by as many processes as there are cores."""
    parts = os.cpu_count() or 1
    writers = [
        subprocess.Popen(
            _ours(
                *("simulate", "--messages", str(messages // parts), "--sessions", "200"),
                *("--seed", str(1_000 + part), "--out", str(folder / f"part-{part}")),
            ),
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        for part in range(parts)
    ]
    codes = [writer.wait() for writer in writers]
    if any(codes):
        raise AssertionError("a simulator failed")


def of_files(folder: Path, runs: int, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Measure replay, export and questions of a folder, beside DuckDB's scan of its JSON."""
    scan, replay, export, question = (Measured(name, 0, []) for name in _FILE_CASES)
    records = size = 0
    for _ in range(runs):
        scanned = _run(sys.executable, "-c", _SCAN, str(folder), environment=environment)
        scan.outcomes.append(scanned)
        messages = int(scanned.last)
        replayed = _run(*_ours("replay", str(folder)), environment=environment)
        replay.outcomes.append(replayed)
        with tempfile.TemporaryDirectory() as tables:
            words = ("export", str(folder), "--to", tables)
            export.outcomes.append(_run(*_ours(*words), environment=environment))
            asked = ("query", "--format", "ndjson", _COUNTS, tables)
            question.outcomes.append(_run(*_ours(*asked), environment=environment))
            size = sum(each.stat().st_size for each in Path(tables).rglob("*.parquet"))
            records = json.loads(question.outcomes[-1].last)["records"]
        if records != replayed.lines:
            raise AssertionError(f"{records} records exported, {replayed.lines} replayed")
        for each in (scan, replay, export, question):
            each.messages = messages
    rows = [each.figures() for each in (scan, replay, export, question)]
    rows[2] |= {"records": records, "bytes_per_record": round(size / records, 1)}
    return rows


_FILE_CASES: Final = (
    "DuckDB scans the JSON",
    "contextgauge replay",
    "contextgauge export",
    "contextgauge query, of the export",
)
_KINDS: Final = [each for each in get_args(Kind) if each not in {ToolUse.kind, UserTurn.kind}]
"""What a replay derives: what is measured of content is only in an export."""

_COUNTS: Final = (
    f"SELECT count(*) AS records FROM ({' UNION ALL '.join(f'SELECT id FROM {k}' for k in _KINDS)})"  # noqa: S608 -- names of tables
)


def of_topic(
    folder: Path, messages: int, runs: int, environment: dict[str, str], bootstrap: str
) -> list[dict[str, Any]]:
    """Publish a folder, and measure its replay beside `kcat | jq` over the same topic."""
    environment = {
        **environment,
        "CONTEXTGAUGE_BOOTSTRAP_SERVERS": bootstrap,
        "CONTEXTGAUGE_PARTITIONS": str(_PARTITIONS),
    }
    _run(*_ours("topics", "create"), environment=environment)
    publish = Measured("contextgauge publish", messages, [])
    publish.outcomes.append(
        _run(*_ours("publish", "--no-live", str(folder)), environment=environment)
    )
    consume = Measured("kcat | jq, one field of each", messages, [])
    replay = Measured("contextgauge replay --topic messages", messages, [])
    measured = [publish, replay]
    for _ in range(runs):
        if shutil.which("kcat") and shutil.which("jq"):
            line = f"kcat -b {bootstrap} -C -t agent.messages -e -q | jq -c .type"
            consume.outcomes.append(_run("sh", "-c", line, environment=environment))
            if consume.outcomes[-1].lines != messages:
                raise AssertionError(f"{consume.outcomes[-1].lines} of {messages} are in the topic")
        replay.outcomes.append(
            _run(*_ours("replay", "--topic", "messages"), environment=environment)
        )
    if consume.outcomes:
        measured.append(consume)
    else:
        print("kcat and jq are not installed: the topic is read without a peer", file=sys.stderr)
    return [each.figures() for each in measured]


@contextlib.contextmanager
def _folder(named: Path | None) -> Iterator[Path]:
    if named is not None:
        named.mkdir(parents=True, exist_ok=True)
        yield named
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.analysis")
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--topic-messages", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with _folder(given.folder) as folder, tempfile.TemporaryDirectory() as state:
        environment = {
            name: value
            for name, value in our_environment().items()
            if not name.startswith("CONTEXTGAUGE_")
        } | {"CONTEXTGAUGE_STATE_FOLDER": state}
        for name, messages in (("files", given.messages), ("topic", given.topic_messages)):
            if not (folder / name).is_dir():
                write_messages(folder / name, messages, environment)
        rows += of_files(folder / "files", given.runs, environment)
        stack = LocalStack(Path(state) / "stack")
        try:
            bootstrap = stack.start(["kafka"])["kafka"].address
            count = sum(
                path.read_bytes().count(b"\n") for path in (folder / "topic").rglob("*.jsonl")
            )
            rows += of_topic(folder / "topic", count, given.runs, environment, bootstrap)
        finally:
            stack.stop()
    for row in rows:
        print(
            f"{row['case']:40} {row['messages_per_s']:>10,} messages/s "
            f"{row['cpu_s_per_million']:6.1f} CPU s per million {row['peak_mib']:6,} MiB"
        )
    print(json.dumps({"load": load(), "rows": rows}))


if __name__ == "__main__":
    main()
