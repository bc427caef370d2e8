"""Selects dead letters: the options of `contextgauge dead`, and how they are parsed."""

import re
from enum import StrEnum
from typing import Annotated

import typer

from contextgauge.errors import ConfigError
from streams.cli.times import TIME_FORMS, parse_time
from streams.flow.dead_letters.letters import REMEDIES, UNKNOWN_REASON
from streams.flow.dead_letters.reading import Selection, Span

_ADDRESS = re.compile(r"(\d{1,9}):(?:(\d{1,18})(?:(-)(\d{1,18})?)?)?", re.ASCII)

Reason = StrEnum("Reason", [*REMEDIES, UNKNOWN_REASON])  # type: ignore[misc]
"""Why a message is a dead letter: those of `DeadReason`, and an unknown one."""

_FORMS = "PARTITION:OFFSET (0:1234), PARTITION:FROM-TO (0:1200-1300) or PARTITION: (0:)"

Addresses = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ADDRESS",
        help=f"As in `dead list`: {_FORMS}. Default: all partitions.",
        show_default=False,
    ),
]
Reasons = Annotated[
    list[Reason] | None,
    typer.Option(
        "--reason",
        help="Only those with this reason; can be given several times.",
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help=f"Only those that died then or later: {TIME_FORMS}.",
        show_default=False,
    ),
]
Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only those that died before then.", show_default=False),
]
OfSession = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="ID",
        help="Only those of this session, by the message or otherwise its key.",
        show_default=False,
    ),
]


def selection(
    addresses: list[str] | None,
    reasons: list[Reason] | None,
    since: str | None,
    until: str | None,
    session: str | None,
    now_ms: int,
) -> Selection:
    """Return what the options select. Raises ConfigError for an invalid option."""
    since_ms = None if since is None else parse_time("--since", since, now_ms)
    until_ms = None if until is None else parse_time("--until", until, now_ms)
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise ConfigError(f"--since {since} is not before --until {until}")
    return Selection(
        spans=tuple(parse_address(address) for address in addresses or ()),
        reasons=frozenset(reasons or ()),
        since_ms=since_ms,
        until_ms=until_ms,
        session_id=session,
    )


def parse_address(text: str) -> Span:
    """Parse an address. Raises ConfigError."""
    address = _ADDRESS.fullmatch(text.strip())
    if address is None:
        raise ConfigError(f"{text!r} is not a valid address: give {_FORMS}")
    partition, begin, dash, last = address.groups()
    if begin is None:
        return Span(int(partition), 0, None)
    if dash is None:
        return Span(int(partition), int(begin), int(begin) + 1)
    span = Span(int(partition), int(begin), None if last is None else int(last) + 1)
    if span.end is not None and span.end <= span.begin:
        raise ConfigError(f"{text!r} ends before it begins: give PARTITION:FROM-TO")
    return span
