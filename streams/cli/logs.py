"""Logs of the workers: structured, on standard error, never with a message's text.

Other commands have none (`streams.cli.lazy` silences them): what goes wrong is their error.
"""

import logging
import sys
import traceback
from collections.abc import Callable

import structlog
from structlog.typing import Processor

from streams.cli.screen.lines import show_warnings
from streams.settings import Settings

_KAFKA_CLIENTS = frozenset({"aiokafka", "faust", "mode"})
"""They log each connection attempt, dozens a second while a broker is away. A worker logs itself
what failed and when it retries, so these lines are for debugging only."""

_NO_BROKER_ANSWERS = "Unable to update metadata"
"""A connected client logs this when it finds none of its brokers."""


class _WithoutKafkaClient(logging.Filter):
    """Drops the Kafka client's lines, and asyncio's about what it forgot: tasks, connections.

    With `debugging` it drops nothing. Either way it calls `no_broker` when no broker answers.
    """

    def __init__(self, no_broker: Callable[[], None], *, debugging: bool) -> None:
        super().__init__()
        self._no_broker, self._debugging = no_broker, debugging

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[0] if record.exc_info else None
        if _NO_BROKER_ANSWERS in record.getMessage():
            self._no_broker()
        if self._debugging:
            return True
        origins = [record.name, error.__module__ if error else ""]
        if record.name == "asyncio" and not record.exc_info:
            return "aiokafka" not in record.getMessage().lower()
        if record.name == "asyncio" and record.exc_info:
            frames = traceback.walk_tb(record.exc_info[2])
            origins += (str(frame.f_globals.get("__name__")) for frame, _ in frames)
        return _KAFKA_CLIENTS.isdisjoint(origin.partition(".")[0] for origin in origins)


def configure(settings: Settings, no_broker: Callable[[], None] = lambda: None) -> None:
    """Send structlog's and the libraries' logs to standard error, in the settings' format.

    `no_broker` is called whenever the Kafka client finds no broker.
    """
    as_json = settings.log_format == "json" or (
        settings.log_format == "auto" and not sys.stderr.isatty()
    )
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        *([structlog.processors.format_exc_info] if as_json else []),
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer(default=str)
        if as_json
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            # The default shows the variables of every frame: passwords, and texts of messages.
            exception_formatter=structlog.dev.plain_traceback,
        )
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    debugging = settings.log_level == "debug"
    handler.addFilter(_WithoutKafkaClient(no_broker, debugging=debugging))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _event_first,
                renderer,
            ],
        )
    )
    show_warnings(structlog.get_logger().warning)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    logging.getLogger("asyncio").setLevel(max(logging.ERROR, root.level))


def _event_first(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Put what a reader looks for first in front; the rest keeps its order."""
    front = {name: event.pop(name) for name in ("timestamp", "level", "event") if name in event}
    return front | dict(event)
