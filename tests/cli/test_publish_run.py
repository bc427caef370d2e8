"""A run of `publish` whose broker goes away at the wrong moment."""

import asyncio
import errno
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from schemas.topics import AGENT_MESSAGES
from streams.cli.exits import Exit
from streams.cli.publish import publish_command, run
from streams.cli.publish.connection import Connection
from streams.edge.files.checkpoint import CheckpointContent
from streams.edge.files.follower import Follower
from streams.edge.files.watch import Failed, TranscriptFile, TranscriptFinder
from streams.edge.memory.log import MemoryLog, MemoryProducer
from streams.settings import Settings
from tests.core.given import assistant

if TYPE_CHECKING:
    from contextgauge.kafka.producer import KafkaProducer
    from streams.edge.kafka.log import KafkaLog


class Reconnecting:
    """A connection that only records why it was renewed."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    async def renew(self, error: RetryError, _stop: asyncio.Event) -> None:
        self.errors.append(str(error))


async def test_publish_waits_for_a_broker_lost_before_checkpoint_validation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[RetryError | CheckpointContent] = [
        RetryError("away"),
        CheckpointContent([], {0: 7}),
    ]

    async def valid(_self: object, _stored: CheckpointContent) -> CheckpointContent:
        answer = answers.pop(0)
        if isinstance(answer, RetryError):
            raise answer
        return answer

    monkeypatch.setattr(run._Run, "valid", valid)  # noqa: SLF001 -- the moment cannot be hit from outside
    connection = Reconnecting()
    publishing = object.__new__(run._Run)  # noqa: SLF001 -- as above
    publishing.connection = cast("Connection", connection)
    publishing.stop = asyncio.Event()
    assert await publishing.compared(CheckpointContent([], {})) == CheckpointContent([], {0: 7})
    assert connection.errors == ["away"]


async def test_a_file_that_cannot_be_read_is_counted_and_the_others_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text('{"type":"user","sessionId":"s","uuid":"1"}\n')
    open_file = os.open

    def refusing(path: str, *options: int) -> int:
        if Path(path).name == "a.jsonl":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return open_file(path, *options)

    monkeypatch.setattr(os, "open", refusing)
    connect_to_memory(monkeypatch)
    settings = Settings(state_folder=str(tmp_path / "state"))
    outcome = await run.run(settings, request_for(tmp_path))
    assert (outcome.unreadable, outcome.done.messages) == (1, 1)
    errors = capsys.readouterr().err
    assert "a.jsonl: cannot be read: Permission denied" in errors
    assert "1 file could not be read: see above" in errors


async def test_lines_whose_figures_are_not_read_are_counted_by_the_runtime_of_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    head = assistant() | {"sessionId": "s", "version": "9.1", "userType": "external"}
    new = {"type": "usage_v2", "sessionId": "s", "usage": {"input_tokens": 9}}
    path.write_text("".join(f"{json.dumps(each)}\n" for each in (head, new, new | {"n": 2})))
    connect_to_memory(monkeypatch)
    await run.run(Settings(state_folder=str(tmp_path / "state")), request_for(tmp_path))
    words = (
        "2 lines of type usage_v2 of Claude Code 9.1 carry usage that this version does not read"
    )
    assert words in capsys.readouterr().err


def connect_to_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish to a log in memory."""
    monkeypatch.setattr(MemoryProducer, "acknowledged", {}, raising=False)

    @asynccontextmanager
    async def connected(*_: object) -> AsyncIterator[Connection]:
        log = MemoryLog(SystemClock())
        await log.create_topics([AGENT_MESSAGES], 2)
        producer = log.producer()
        await producer.start()
        topic = AGENT_MESSAGES.name
        yield Connection(cast("KafkaLog", log), topic, print, cast("KafkaProducer", producer), 2)

    monkeypatch.setattr(run, "connected", connected)


def test_a_publication_that_lacks_a_file_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ran(*_: object) -> run.Outcome:
        return run.Outcome(unreadable=1)

    monkeypatch.setattr(publish_command, "run", ran)
    with pytest.raises(typer.Exit) as ended:
        publish_command.publish([str(tmp_path)])
    assert ended.value.exit_code == Exit.STOPPED


def request_for(folder: Path) -> run.Request:
    return run.Request(
        files=[str(folder)],
        pipes=(),
        follow=False,
        session=None,
        live=None,
        no_text=False,
        again=False,
        checkpoint=None,
        task_id=None,
        agent_id=None,
    )


def test_a_transcript_deleted_since_it_was_listed_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("{}\n")
    look = TranscriptFinder.look

    def look_and_delete(
        self: TranscriptFinder, now_s: float, failed: Failed
    ) -> list[TranscriptFile]:
        transcripts = look(self, now_s, failed)
        (tmp_path / "a.jsonl").unlink()
        return transcripts

    monkeypatch.setattr(TranscriptFinder, "look", look_and_delete)
    transcripts = run._look(request_for(tmp_path))  # noqa: SLF001 -- the moment cannot be hit from outside
    follower = Follower(transcripts, [], SystemClock())
    lines = [Path(line.file).name for piece in follower.pieces() for line in piece.lines]
    assert lines == ["b.jsonl"]
