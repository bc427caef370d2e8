"""Logs: the workers' are structured, on standard error, and never hold a message's text.

All other commands have none: what goes wrong is their error.
"""

import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

import structlog
from structlog.typing import Processor

from contextgauge.kafka.connection import UnsafeConnectionWarning
from streams.settings import Settings

_KAFKA_CLIENTS = frozenset({"aiokafka", "faust", "mode"})
"""They tell of each of their own attempts, dozens a second while a broker is away. A worker says
itself what failed and when it tries again, so these lines are for debugging only."""


_NO_BROKER_ANSWERS = "Unable to update metadata"
"""A client that was connected says this when it finds none of its brokers."""


class _WithoutKafkaClient(logging.Filter):
    """Drops what the Kafka client says, and what asyncio says of futures that it forgot.

    With `debugging` it only listens.
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
        origins = (record.name, error.__module__ if error else "")
        return _KAFKA_CLIENTS.isdisjoint(origin.partition(".")[0] for origin in origins)


def silence() -> None:
    """Let nothing be logged: neither by a library, nor by flows that run inside a command."""
    logging.getLogger().handlers[:] = [logging.NullHandler()]
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        cache_logger_on_first_use=False,  # a worker configures anew
    )


def show_warnings(show: Callable[[str], object]) -> None:
    """Have what is unsafe in the settings shown by `show`, once; other warnings as ever."""
    others = warnings.showwarning

    def showwarning(
        message: Warning | str,
        category: type[Warning],
        *where: Any,  # noqa: ANN401 -- file, line and more: nothing that a user needs
    ) -> None:
        if issubclass(category, UnsafeConnectionWarning):
            show(str(message))
        else:
            others(message, category, *where)

    warnings.showwarning = showwarning  # type: ignore[assignment]  # takes all that it is given


def configure(settings: Settings, no_broker: Callable[[], None] = lambda: None) -> None:
    """Send structlog's and the libraries' logs to standard error, in the settings' form.

    `no_broker` is called at each of the Kafka client's attempts in vain to find a broker.
    """
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


def _unchanged(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    return event
