"""Logs of the workers: structured, on standard error, never with a message's text in them."""

import logging
import sys

import structlog
from structlog.typing import Processor

from streams.settings import Settings

_LIBRARIES = {"aiokafka": logging.WARNING, "asyncio": logging.ERROR}
"""Libraries say at these levels what a worker's own log does not."""


_NO_NEWS = (
    # At the first produce of a transaction Kafka 4 still verifies it, refuses once, and takes
    # the retry.
    "NotEnoughReplicasError",
    # A new broker makes its groups' topic at the first question, and answers the second.
    "GroupCoordinatorNotAvailableError",
    # A worker tells itself that a service is away, and when it tries again.
    "Unable connect to",
    "Unable to request metadata",
)
"""Lines of the libraries with these words are dropped."""


class _WithoutNoNews(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        return not any(words in message for words in _NO_NEWS)


def configure(settings: Settings) -> None:
    """Send structlog's and the libraries' logs to standard error, in the settings' form."""
    as_json = settings.log_format == "json" or (
        settings.log_format == "auto" and not sys.stderr.isatty()
    )
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info if as_json else _unchanged,
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer(default=str)
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
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
    handler.addFilter(_WithoutNoNews())
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
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    for name, level in _LIBRARIES.items():
        logging.getLogger(name).setLevel(max(level, root.level))


def _event_first(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Put what a reader looks for first in front; the rest keeps its order."""
    front = {name: event.pop(name) for name in ("timestamp", "level", "event") if name in event}
    return front | dict(event)


def _unchanged(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    return event
