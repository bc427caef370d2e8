"""An API that takes requests to the control plane."""

from typing import Any

import httpx

from contextgauge.clock import SystemClock
from contextgauge.partitioner import partition_of
from schemas.commands import CommandData
from schemas.records import Record
from schemas.topics import CONTEXT_COMMANDS
from streams.codec.commands import read_entry
from streams.edge.commands import LogCommandSink
from streams.edge.memory.log import MemoryLog
from tests.doubles.control import KeptControl
from tests.serve.kit import PARTITIONS, Api, GrowingViews, api_over

TOPIC = CONTEXT_COMMANDS.name
CLOCK = SystemClock()
JSON = {"content-type": "application/json"}


class Control:
    """An API over views of some sessions, and a log of commands."""

    def __init__(self, records: list[Record], **serving: Any) -> None:
        self.log = MemoryLog(CLOCK)
        self.reader = KeptControl(seen_ms=CLOCK.now_ms())
        self.session = records[0].data.session_id
        views = GrowingViews()
        views.add(*[each for each in records if each.data.session_id == self.session])
        sink = LogCommandSink(self.log, TOPIC)
        given: dict[str, Any] = {"control": self.reader, "commands": sink, "clock": CLOCK}
        self.api: Api = api_over(views, **(given | serving))

    async def create(self) -> "Control":
        await self.log.create_topics([CONTEXT_COMMANDS], PARTITIONS)
        return self

    @property
    def path(self) -> str:
        return f"/v1/sessions/{self.session}"

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.api.client.request(method, path, json=body, headers=named)

    async def sent(self, partition: int | None = None) -> list[CommandData]:
        number = partition_of(self.session, PARTITIONS) if partition is None else partition
        reader = self.log.reader(TOPIC, [number])
        await reader.start()
        reader.seek(number, 0)
        batch = await reader.poll(number, 100, 0.01)
        await reader.stop()
        return [read_entry(each.headers, each.value or b"").data for each in batch.records]
