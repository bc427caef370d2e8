"""The API under test: views in memory that grow, and an application over them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx
from starlette.applications import Starlette

from contextgauge.clock import SystemClock
from contextgauge.normalise.signals import InputMessage
from contextgauge.partitioner import partition_of
from contextgauge.pricing.bundled import price_of
from contextgauge.window_catalog import bundled
from schemas.records import Record
from schemas.views import LIVE_ENTRIES
from streams import codec
from streams.core.costs import PriceLookup
from streams.core.derivation.rules_config import Rules
from streams.edge.memory.view_store import MemoryPartition
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import answers
from streams.flow.derive.deriver import Deriver
from streams.flow.project.fold import LoggedRecord
from streams.flow.simulator import SimulationOptions, sample_sessions
from streams.ports import (
    AskedContexts,
    Clock,
    CommandSink,
    ControlReader,
    ConversationReader,
    Entry,
    Generations,
    Health,
    ProjectorHeartbeat,
    ViewPosition,
    ViewReader,
)
from streams.serve.api.app import create_app
from streams.serve.api.serving import ReadSettings, ReadTitles, Serving
from tests.doubles.dump import view_fold
from tests.doubles.view_store import FaultyViews

PARTITIONS = 3


@cache
def _sample_records(seed: int) -> tuple[Record, ...]:
    deriver = Deriver(Rules(bundled()))
    return tuple(
        record
        for message in sample_sessions(SimulationOptions(seed=seed))
        for record in deriver.derive(InputMessage(message.value, message.session_id)).records
    )


def sample_records(seed: int = 1) -> list[Record]:
    """Return all records of the simulator's sample."""
    return list(_sample_records(seed))


class GrowingViews(FaultyViews):
    """Views in memory that records are folded into one by one, as a projector would."""

    def __init__(self, generation: int = 1, partitions: int = PARTITIONS) -> None:
        super().__init__()
        self.generation, self.count = generation, partitions
        self.offsets = [0] * partitions
        self._folds = [view_fold() for _ in range(partitions)]
        self.numbers = Generations(generation, None)
        self._place()

    def add(self, *records: Record, logged_ms: int | None = None) -> None:
        """Fold the records of one transaction, and move the positions.

        `logged_ms` is when Kafka received them.
        """
        partitions = [partition_of(record.data.session_id, self.count) for record in records]
        for partition, record in zip(partitions, records, strict=True):
            self._folds[partition].add(LoggedRecord(self.offsets[partition], logged_ms, record))
            self.offsets[partition] += 1
        for partition in set(partitions):
            self.offsets[partition] += 1  # the transaction's marker
        self._place()

    def swap(self) -> None:
        """Make the same views those of the next generation; the former stays."""
        self.generation += 1
        self.numbers = Generations(self.generation, None)
        self._place()

    def forget_live(self, partition: int, kept: int) -> None:
        """Let the feed of a partition be one that was capped, with so many entries left."""
        live = self._folds[partition].documents.held.live
        del live[: len(live) - kept]
        live[:0] = live[:1] * (LIVE_ENTRIES - len(live))

    def go_back(self, entries: int) -> list[list[Entry]]:
        """Lose the last entries of each partition, as a Redis may that starts anew."""
        lost = []
        for partition, fold in enumerate(self._folds):
            live = fold.documents.held.live
            start = max(len(live) - entries, 0)
            lost.append(live[start:])
            del live[start:]
            if lost[-1]:
                self.offsets[partition] = lost[-1][0].offset
        self._place()
        return lost

    def come_forward(self, lost: list[list[Entry]]) -> None:
        """Have again what was lost."""
        for partition, entries in enumerate(lost):
            self._folds[partition].documents.held.live.extend(entries)
            if entries:
                self.offsets[partition] = entries[-1].offset + 2
        self._place()

    def break_live(self, record: Record) -> None:
        """Fold a record, and let its entry of the feed be one that no build writes."""
        self.add(record)
        live = self._folds[partition_of(record.data.session_id, self.count)].documents.held.live
        live[-1] = live[-1]._replace(document=b"{}")

    def report_heartbeat(self, heartbeat: ProjectorHeartbeat | None) -> None:  # type: ignore[override]  # of all partitions
        """Let projectors tell this of every partition."""
        self._place(heartbeat)

    def _place(self, heartbeat: ProjectorHeartbeat | None = None) -> None:
        now = ProjectorHeartbeat(SystemClock().now_ms(), None, 0)
        for partition, fold in enumerate(self._folds):
            offset = self.offsets[partition]
            position = ViewPosition(
                offset,
                0,
                self.count,
                caught_up=True,
                heartbeat=heartbeat or now._replace(end=offset),
            )
            documents = fold.documents.held
            self.partitions[self.generation, partition] = MemoryPartition(position, documents)


@dataclass
class Api:
    """An application, its reader's side, and what it reported."""

    app: Starlette
    client: httpx.AsyncClient
    telemetry: PrometheusTelemetry
    reported: list[tuple[str, BaseException]] = field(default_factory=list)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """Ask; `if_none_match="…"` is a header."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.get(path, headers=named)

    async def json(self, path: str) -> Any:
        """Ask for what must be there."""
        answer = await self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()


def api_over(  # noqa: PLR0913 -- each test needs one or two of them
    reader: ViewReader,
    *,
    readers: Callable[[], Mapping[str, str]] | None = None,
    requests_per_s: int = 0,
    streams: int = 100,
    origins: Sequence[str] = (),
    only_here: bool = True,
    names: Sequence[str] = (),
    clock: Clock | None = None,
    titles: ReadTitles | None = None,
    runtime_settings: ReadSettings | None = None,
    conversations: ConversationReader | None = None,
    asked: AskedContexts | None = None,
    is_local: bool = False,
    control: ControlReader | None = None,
    commands: CommandSink | None = None,
    writers: Callable[[], frozenset[str]] | None = None,
    prices: PriceLookup = price_of,
) -> Api:
    """Return an application over views, for `view` where it is local, else for `serve`."""
    telemetry, clock = PrometheusTelemetry("serve", "worker"), clock or SystemClock()
    health = Health("serve", clock, 60.0)
    health.worker("member")
    reported: list[tuple[str, BaseException]] = []
    app = create_app(
        Serving(
            reader=reader,
            clock=clock,
            telemetry=telemetry,
            health=health,
            probe=answers(telemetry, health),
            report=lambda doing, error: reported.append((doing, error)),
            readers=readers,
            requests_per_s=requests_per_s,
            streams=streams,
            origins=origins,
            only_here=only_here,
            names=names,
            titles=titles,
            runtime_settings=runtime_settings,
            conversations=conversations,
            asked=asked,
            service="the local file" if is_local else "redis",
            control=control,
            commands=commands,
            writers=writers,
            prices=prices,
            host_setting="--host" if is_local else "CONTEXTGAUGE_SERVE_HOST",
        )
    )
    transport = httpx.ASGITransport(app=app)
    client = httpx.AsyncClient(transport=transport, base_url="http://localhost")
    return Api(app, client, telemetry, reported)


def document(record: Record) -> Any:
    """Return a record as the API tells it."""
    return codec.loads(codec.to_structured(record))
