"""A run of `publish` whose broker goes away at the wrong moment."""

import asyncio
from typing import cast

import pytest

from contextgauge.errors import RetryError
from streams.cli.publish import run
from streams.cli.publish.connection import Connection
from streams.edge.files.checkpoint import CheckpointContent


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
