"""`contextgauge export` and `query`: tables of transcripts, and answers in SQL."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from schemas.records import ContextReading
from streams.cli.query_answers import AnswerFormat, ListedRows, print_answer
from streams.edge.files.folders import write_folder
from streams.edge.tables.questions import VIEWS, questions
from streams.flow.simulator import SimulationOptions, sample_sessions
from tests.codec.test_records import records_of_every_kind
from tests.commands import Command
from tests.core.given import Given, assistant, boundary, one, record_of
from tests.edge.tables_kit import asked, engine_of


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A projects folder with the transcripts of the sample."""
    folder = tmp_path_factory.mktemp("projects")
    files = [
        each
        for each in sample_sessions(SimulationOptions(providers=("claude",)))
        if "/" in each.file
    ]
    write_folder(folder, ((each.file, each.value) for each in files))
    return folder


def answered(command: Command, question: str, *paths: Path) -> list[dict[str, Any]]:
    """Return the rows of an answer."""
    done = command("query", "--format", "ndjson", question, *map(str, paths))
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def replayed(command: Command, *paths: Path) -> list[dict[str, Any]]:
    done = command("replay", *map(str, paths))
    assert done.returncode == 0
    return [json.loads(line) for line in done.stdout.splitlines()]


def own(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the data of the sessions' own records of a kind."""
    return [
        event["data"]
        for event in events
        if event["type"] == f"contextgauge.{kind}.v1" and not event["data"].get("inherited")
    ]


@pytest.mark.extended
def test_answers_equal_what_the_records_say(command: Command, projects: Path) -> None:
    events = replayed(command, projects)
    boundaries = own(events, "compact_boundary")
    assert len(boundaries) > 2
    by_trigger = {
        row["trigger"]: (row["compactions"], row["average_pre_tokens"])
        for row in answered(command, "compactions-by-trigger", projects)
    }
    counts = Counter(boundary["trigger"] for boundary in boundaries)
    for trigger, (compactions, average) in by_trigger.items():
        name = None if trigger == "unknown" else trigger
        sizes = [each["pre_tokens"] for each in boundaries if each["trigger"] == name]
        known = [each for each in sizes if each is not None]
        assert compactions == counts[name] == len(sizes)
        assert average == pytest.approx(sum(known) / len(known), abs=0.5)
    assert sum(compactions for compactions, _ in by_trigger.values()) == len(boundaries)

    (saved,) = answered(command, "tokens-saved", projects)
    measured = [each["tokens_saved"] for each in own(events, "compaction_complete")]
    assert saved["tokens_saved"] == sum(each for each in measured if each is not None)

    (between,) = answered(command, "messages-between", projects)
    steps = [each["messages_since_last"] for each in boundaries if each["chain"] == "main"]
    assert between["average_messages"] == pytest.approx(sum(steps) / len(steps), abs=0.051)

    sessions = answered(command, "sessions", projects)
    assert {row["session_id"] for row in sessions} == {
        each["data"]["session_id"] for each in events
    }
    readings = own(events, "context_reading")
    for row in sessions:
        mine = [each for each in readings if each["session_id"] == row["session_id"]]
        main = [each for each in mine if each["chain"] == "main"]
        assert row["responses"] == len(mine)
        assert row["cache_read_tokens"] == sum(each["cache_read_tokens"] or 0 for each in mine)
        assert row["used_tokens"] == (main[-1]["used_tokens"] if main else None)


@pytest.mark.extended
def test_an_export_gives_the_same_answers_as_its_transcripts(
    command: Command, projects: Path, tmp_path: Path
) -> None:
    done = command("export", str(projects), "--to", str(tmp_path / "tables"), "--merge")
    assert done.returncode == 0
    measured = "SELECT count(*) AS n FROM (FROM tool_use UNION ALL BY NAME FROM user_turn)"
    records = len(replayed(command, projects)) + answered(command, measured, projects)[0]["n"]
    assert f"{records} records in " in done.stderr.replace(",", "")
    for question in ("durations", "pressure", "SELECT * FROM receipts ORDER BY id"):
        assert answered(command, question, tmp_path / "tables") == answered(
            command, question, projects
        )


@pytest.mark.extended
def test_every_question_is_answered_and_has_a_title(tmp_path: Path) -> None:
    engine = engine_of(records_of_every_kind(), tmp_path)
    for question in questions():
        answer = engine.answer(question.sql)
        assert all(len(row) == len(answer.columns) for rows in answer.rows() for row in rows)
        assert question.title.endswith("?")
    assert set(VIEWS) <= set(engine.views())
    assert not set(VIEWS) & {each.name for each in questions()}  # one name asks one thing
    assert len(questions()) > 15


@pytest.mark.extended
def test_calls_of_tools_are_joined_with_their_results(command: Command, projects: Path) -> None:
    tools = answered(command, "SELECT * FROM tools WHERE result_bytes IS NOT NULL", projects)
    assert tools
    assert all((row["duration_ms"] or 0) >= 0 and row["input_bytes"] > 0 for row in tools)
    turns = answered(
        command, "SELECT * FROM user_turns ORDER BY session_id, chain, number", projects
    )
    assert turns
    numbers: dict[tuple[str, str], int] = Counter()
    for row in turns:
        numbers[row["session_id"], row["chain"]] += 1
        assert row["number"] == numbers[row["session_id"], row["chain"]]


def test_a_median_duration_says_of_how_many_compactions(tmp_path: Path) -> None:
    given = Given()
    for known in (
        {"trigger": "auto", "duration_ms": 30_000},
        {"trigger": "auto"},
        {"trigger": "manual"},
    ):
        given.take(boundary({"pre_tokens": 150_000, **known}))
    (row,) = asked(engine_of(given.records, tmp_path), "manual-against-automatic")
    assert tuple(row.values()) == (1, 0, None, 2, 1, 30_000)


@pytest.mark.extended
def test_an_input_without_a_session_is_reported(command: Command, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    words = f"{empty} has no session: it is empty\n"
    for arguments in (("query", "totals"), ("export", "--to", str(tmp_path / "tables"))):
        done = command(*arguments, str(empty))
        assert done.returncode == 0
        assert done.stderr.startswith(f"contextgauge: warning: {words}")
    done = command("query", "SELECT * FROM sessions", str(tmp_path / "tables"))
    assert (done.returncode, done.stderr.endswith("has no session: it is empty\n")) == (0, True)
    done = command("report", str(empty), "--out", str(tmp_path / "report.html"))
    assert (done.returncode, done.stderr) == (1, f"contextgauge: {words}")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.extended
def test_a_single_transcript_is_asked_by_its_name(command: Command, projects: Path) -> None:
    transcript = min(projects.glob("*/*.jsonl"))
    rows = answered(command, "sessions", transcript)
    assert rows
    assert {row["session_id"] for row in rows} == {
        each["data"]["session_id"] for each in replayed(command, transcript)
    }


def test_a_late_reading_counts_and_is_not_the_size_of_its_session(tmp_path: Path) -> None:
    given = Given()
    given.take(assistant("msg_1", read=90_000))
    newest = record_of(given.records, ContextReading)
    reading = one(given.records, ContextReading)
    data = replace(reading, response_id="msg_0", used_tokens=10, used_percent=0.01, late=True)
    late = replace(newest, id="late", sequence=newest.sequence + 1, data=data)
    engine = engine_of([*given.records, late], tmp_path)
    (row,) = asked(engine, "SELECT responses, used_tokens, used_percent FROM sessions")
    assert tuple(row.values()) == (2, 90_000, 45.0)


@pytest.mark.extended
def test_a_compaction_is_one_row_whatever_is_known_of_it(command: Command, projects: Path) -> None:
    rows = answered(command, "SELECT id, count(*) AS n FROM receipts GROUP BY id", projects)
    assert rows
    assert {row["n"] for row in rows} == {1}


@pytest.mark.extended
def test_answers_are_csv_in_a_pipe(command: Command, projects: Path) -> None:
    values = "1 AS one, NULL AS nothing, [1, 2] AS list, true AS yes, TIMESTAMPTZ '2026-05-01' AS t"
    question = f"SELECT {values}"
    done = command("query", question, str(projects))
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert row == {
        "one": "1",
        "nothing": "",
        "list": "[1, 2]",
        "yes": "true",
        "t": "2026-05-01T00:00:00.000Z",
    }


@pytest.mark.extended
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["SELEC 1"], "the query is wrong"),
        (["SELECT 1; SELECT 2"], "one statement at a time"),
        (["DROP VIEW sessions"], "only a SELECT gives an answer"),
        (["nonsense"], "no question is named 'nonsense'"),
        ([], "name a question or a SELECT"),
    ],
)
def test_a_wrong_question_is_refused(
    command: Command, projects: Path, arguments: list[str], words: str
) -> None:
    done = command("query", *arguments, *([str(projects)] if arguments else []))
    assert done.returncode == 2
    assert words in done.stderr


@pytest.mark.extended
def test_questions_views_and_their_sql_are_listed(command: Command) -> None:
    listed = list(csv.DictReader(io.StringIO(command("query", "--list").stdout)))
    assert [each["name"] for each in listed] == [each.name for each in questions()]
    assert "receipts,turns_kept,BIGINT" in command("query", "--views").stdout.splitlines()
    sql = command("query", "--sql", "thrashing").stdout
    assert sql.startswith("WITH spans AS (\n")
    assert command("query", "--views", "--sql").stdout.count("CREATE OR REPLACE VIEW") > len(VIEWS)


@pytest.mark.extended
def test_the_sql_of_a_question_gives_its_answer(command: Command, projects: Path) -> None:
    sql = command("query", "--sql", "totals").stdout
    assert answered(command, sql, projects) == answered(command, "totals", projects)


@pytest.mark.extended
def test_a_row_that_no_table_has_room_for_is_printed_as_lines(
    command: Command, projects: Path
) -> None:
    shown = command("query", "--format", "table", "sessions", str(projects)).stdout.splitlines()
    (first, *_) = answered(command, "sessions", projects)
    assert ["session_id", first["session_id"]] in [line.split() for line in shown]
    narrow = "SELECT session_id, compactions > 0 AS compacted FROM sessions"
    shown = command("query", "--format", "table", narrow, str(projects)).stdout.splitlines()
    assert shown[0].split() == ["session_id", "compacted"]


class _Endless:
    """An answer without an end."""

    columns = ("n",)

    def __init__(self) -> None:
        self.parts = 0

    def rows(self) -> Iterator[list[tuple[Any, ...]]]:
        while True:
            self.parts += 1
            yield [(each,) for each in range(100)]


def test_a_terminal_reads_no_more_rows_than_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    answer = _Endless()
    print_answer(answer, AnswerFormat.TABLE)
    assert answer.parts == 11
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 1_001
    assert "1,000 rows are shown, there are more" in shown.err
    print_answer(ListedRows(("n",), [(each,) for each in range(1_000)]), AnswerFormat.TABLE)
    assert not capsys.readouterr().err


@pytest.mark.extended
def test_an_export_without_types_is_not_queried(
    command: Command, projects: Path, tmp_path: Path
) -> None:
    command("export", str(projects), "--to", str(tmp_path / "csv"), "--format", "csv")
    done = command("query", "sessions", str(tmp_path / "csv"))
    assert done.returncode == 2
    assert "queries read Parquet and Arrow" in done.stderr


@pytest.mark.extended
def test_ids_stay_text_for_readers_that_guess_types(
    command: Command, projects: Path, tmp_path: Path
) -> None:
    command("export", str(projects), "--to", str(tmp_path))
    types = duckdb.connect().execute(
        "DESCRIBE SELECT id, session_id, sequence, time FROM read_parquet(?)",
        [f"{tmp_path}/kind=context_reading/*/*.parquet"],
    )
    assert [row[1] for row in types.fetchall()] == [
        *("VARCHAR", "VARCHAR", "BIGINT", "TIMESTAMP WITH TIME ZONE")
    ]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["y", "--topic", "--to", "x"], "name no paths with it"),
        (["--topic", "--replace", "--to", "x"], "--replace is for transcripts"),
        (["y", "--replace", "--even-if-less", "--to", "x"], "leave out --even-if-less"),
        (["", "--to", "x"], "an empty name"),
        (["y", "--to", ""], "an empty name"),
        (["y", "--follow", "5", "--to", "x"], "--follow is for --topic"),
        (["y", "--to", "gopher://x/y"], "gopher://x/y"),
    ],
)
def test_contradicting_options_are_refused(
    command: Command, arguments: list[str], words: str
) -> None:
    done = command("export", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
