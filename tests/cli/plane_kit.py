"""What the commands of the control plane are connected to: twins in memory."""

import asyncio
from dataclasses import replace

from typer.testing import CliRunner, Result

from contextgauge.clock import SystemClock
from contextgauge.partitioner import partition_of
from schemas.commands import CommandData, CommandView, CompactRequested, ControlView, DecisionView
from schemas.records import Record
from schemas.topics import CONTEXT_COMMANDS
from streams.cli.app import app
from streams.codec.commands import read_entry
from streams.edge.commands import LogCommandSink
from streams.edge.memory.log import MemoryLog
from tests.doubles.control import KeptControl
from tests.serve.kit import PARTITIONS, GrowingViews

TOPIC = CONTEXT_COMMANDS.name
NOW_MS = 1_793_534_400_000
DONE = CommandView(
    command_id="5e3f6f0a-6f9b-4c1e-9a53-0b8a7f1d2c33",
    trigger="auto",
    requested_by="control",
    instructions=None,
    cause_id="r-1",
    state="finished",
    requested_ms=NOW_MS - 90_000,
    accepted_ms=NOW_MS - 89_000,
    finished_ms=NOW_MS - 61_600,
    attempt=1,
    driver="service",
    tokens_before=171_204,
    summariser="anthropic:claude-haiku-4-5",
    outcome="completed",
    receipt={"tokens_before": 171_204, "tokens_after": 52_300, "messages_archived": 41},
)
DECISION = DecisionView(
    id="d-1",
    time_ms=NOW_MS - 90_000,
    fired=True,
    reason="above_threshold",
    command_id=DONE.command_id,
    cause_id="r-1",
    model="claude-sonnet-5",
    used_tokens=171_204,
    window=200_000,
    window_source="catalog",
    threshold_tokens=170_000,
)


class AnsweringLog(MemoryLog):
    """A log whose requests a control worker answers at once, with `answer` of each."""

    def __init__(self, control: KeptControl, session: str) -> None:
        super().__init__(SystemClock())
        self.control, self.session = control, session
        self.answer: CommandView | None = None

    def entries(self, session: str | None = None) -> list[CommandData]:
        number = partition_of(session or self.session, PARTITIONS)

        async def read() -> list[CommandData]:
            reader = self.reader(TOPIC, [number])
            await reader.start()
            reader.seek(number, 0)
            batch = await reader.poll(number, 100, 0.01)
            await reader.stop()
            return [read_entry(each.headers, each.value or b"").data for each in batch.records]

        return asyncio.run(read())

    def sink(self) -> LogCommandSink:
        log = self

        class Sink(LogCommandSink):
            async def send(self, entries: object) -> None:
                await super().send(entries)  # type: ignore[arg-type]
                for entry in entries:  # type: ignore[attr-defined]
                    if log.answer is not None and isinstance(entry.data, CompactRequested):
                        command = replace(log.answer, command_id=entry.data.command_id)
                        view = ControlView(session_id=log.session, commands=(command,))
                        log.control.views[log.session] = view

        return Sink(self, TOPIC)


class Plane:
    """What the commands are connected to."""

    def __init__(self, records: list[Record]) -> None:
        self.session = records[0].data.session_id
        self.views = GrowingViews()
        self.views.add(*[each for each in records if each.data.session_id == self.session])
        self.control = KeptControl(seen_ms=SystemClock().now_ms())
        self.log = AnsweringLog(self.control, self.session)
        asyncio.run(self.log.create_topics([CONTEXT_COMMANDS], PARTITIONS))

    def run(self, *arguments: str, text: str | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=text)
