"""A run of `publish` whose broker goes away at the wrong moment."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from streams.cli.publish import run
from streams.cli.publish.connection import Connection
from streams.edge.files.checkpoint import CheckpointContent
from streams.edge.files.follower import Follower
from streams.edge.files.watch import Failed, TranscriptFile, TranscriptFinder


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
    request = run.Request(
        files=[str(tmp_path)],
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
    transcripts = run._look(request)  # noqa: SLF001 -- the moment cannot be hit from outside
    follower = Follower(transcripts, [], SystemClock())
    lines = [Path(line.file).name for piece in follower.pieces() for line in piece.lines]
    assert lines == ["b.jsonl"]
