"""What the servers depend on, and their configuration."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from contextgauge.pricing import price_of
from contextgauge.runtime_settings import RuntimeSettings
from contextgauge.settings.forms import PREFIX
from streams.core.costs import PriceLookup
from streams.core.until_compaction import NO_POINTS, CompactionPoints
from streams.ports import (
    AskedContexts,
    Clock,
    CommandSink,
    ControlReader,
    ConversationReader,
    Health,
    ReadingProgress,
    Service,
    Telemetry,
    ViewReader,
)

Report = Callable[[str, BaseException], None]
"""Logs an error and what was being done; never an error's text about a message."""

ReadTitles = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""Returns the titles of those sessions, by id, that have one."""

RuntimeFolder = tuple[str | None, str | None]
"""A runtime and a folder, on which the runtime's own settings depend."""

ReadSettings = Callable[[Sequence[RuntimeFolder]], Mapping[RuntimeFolder, RuntimeSettings]]
"""Returns what is set in those places that have any setting."""

Probe = Callable[[str, str], tuple[int, str, bytes]]
"""Answers `/metrics`, `/healthz` and `/readyz`: status, media type and body, from the path and
the header Accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """What every HTTP server has.

    `readers` returns the names of its clients by the hashes of their tokens; None: it answers
    everybody. `only_here`: it serves this machine only; `names`: as these only. `requests_per_s`
    limits one client, 0: no limit. For messages, `settings` begins the names of the server's
    settings, `host_setting` sets the address and `rate_hint` avoids the limit. Requests are counted
    in the metrics `requests_metric` and `seconds_metric`.
    """

    clock: Clock
    telemetry: Telemetry
    health: Health
    probe: Probe
    report: Report
    readers: Callable[[], Mapping[str, str]] | None = None
    only_here: bool = True
    names: Collection[str] = ()
    requests_per_s: int = 0
    settings: str = f"{PREFIX}SERVE"
    host_setting: str = f"{PREFIX}SERVE_HOST"
    rate_hint: str = "ask less often, with If-None-Match, or read /v1/stream"
    requests_metric: str = "serve_requests"
    seconds_metric: str = "serve_request_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving(ServerContext):
    """The dependencies and configuration of the API and the page.

    `streams` limits the live feed. `origins` are those of pages that may read from a browser.
    `service` is where the views are.
    `points` are where compactions are expected by the settings.
    `control` reads what the control plane knows, where there is one; `commands` is where requests
    to it go, None: this server only reads. `writers` returns the hashes of the tokens that may
    write; None as `readers`.
    `reading` returns how much of local transcripts has been read, where this process reads them;
    `titles` reads sessions' titles from there, if they are to be shown, and `runtime_settings`
    returns the runtimes' own settings on this machine.
    `prices` gives a model's price, `thresholds` are those of warnings, percent.
    `conversations` reads sessions' text, where it is kept; `asked` remembers whose agents ask.
    """

    reader: ViewReader
    streams: int = 2_000
    origins: Sequence[str] = ()
    service: Service = "redis"
    points: CompactionPoints = NO_POINTS
    reading: Callable[[], ReadingProgress | None] | None = None
    titles: ReadTitles | None = None
    runtime_settings: ReadSettings | None = None
    control: ControlReader | None = None
    commands: CommandSink | None = None
    writers: Callable[[], frozenset[str]] | None = None
    conversations: ConversationReader | None = None
    asked: AskedContexts | None = None
    prices: PriceLookup = price_of
    thresholds: Sequence[int] = ()
