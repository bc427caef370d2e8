"""`contextgauge hook compaction`: the start and the end of a compaction, which no transcript has.

What a runtime passes to the hooks before and after a compaction becomes the messages in which
Claude Code's stream says the same (docs/adr/0089). They are kept on this machine, for the commands
that read transcripts, and sent to a service or to Kafka where that is asked for. Nothing stands in
the compaction's way: whatever goes wrong is one line on standard error, and the exit code is 0.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final
from uuid import UUID, uuid5

import typer

from contextgauge.errors import ConfigError
from streams import codec
from streams.cli.api_client import ApiClient, TokenFile
from streams.cli.hook_input import HookInput, read_hook_input, report
from streams.codec.cloudevents import rfc3339
from streams.edge.files.hook_messages import HookMessages

_COMMAND: Final = "compaction"
_REQUEST_S: Final = 5.0
"""The agent waits for the hook meanwhile."""
_MESSAGES: Final = "/v1/messages"

_IDS: Final = UUID("5a1a1e5e-3d1d-5d86-9d0f-0d6c1d6f0b89")
"""Any constant one: a message's id follows from its session, time and event."""

_BEGINS: Final = "PreCompact"
_ENDS: Final = "PostCompact"


def compaction(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="Send the messages to a service that takes them over HTTP: to /v1/messages there.",
        ),
    ] = None,
    token_file: TokenFile = None,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Publish the messages to the Kafka of the settings.")
    ] = False,
) -> None:
    """Record when a compaction starts and ends, which no transcript says.

    For PreCompact and PostCompact of Claude Code, Codex and Qwen Code. `view`, `status`, `sessions`
    and `events` of this machine show it: a compaction under way, and how long each took.
    """
    try:
        given = read_hook_input()
        messages = messages_of(given, time.time_ns() // 1_000_000)
        if not messages:
            raise ConfigError(  # noqa: TRY301 -- reported below
                f"{given.event or 'this'} is no hook of a compaction: use it for PreCompact and "
                "PostCompact"
            )
    except Exception as error:  # noqa: BLE001 -- a hook must not stand in the way
        report(_COMMAND, error)
        return
    state = HookMessages(os.environ.get("CONTEXTGAUGE_STATE_FOLDER") or None)
    _try(lambda: state.add(given.session_id, messages))
    if url is not None:
        _try(lambda: _post(ApiClient(url, token_file, _REQUEST_S), messages))
    if kafka:
        _try(lambda: _publish(given.session_id, messages))


def messages_of(given: HookInput, now_ms: int) -> list[dict[str, Any]]:
    """Return the messages of a hook; none where it is not about a compaction."""
    if given.event == _BEGINS:
        hint = {"hook_event_name": _BEGINS, "trigger": given.text("trigger")}
        start = {"type": "system", "subtype": "status", "status": "compacting"}
        parts: list[dict[str, Any]] = [hint, start]
    elif given.event == _ENDS:
        end = {"type": "system", "subtype": "status", "status": None, "compact_result": "success"}
        parts = [end]
    else:
        return []
    of = {"session_id": given.session_id, "timestamp": rfc3339(now_ms)}
    return [
        {
            **part,
            **of,
            "uuid": str(uuid5(_IDS, f"{given.session_id} {now_ms} {index} {given.event}")),
        }
        for index, part in enumerate(parts)
    ]


def _try(act: Callable[[], object]) -> None:
    """Do one of several things, whatever becomes of the others."""
    try:
        act()
    except Exception as error:  # noqa: BLE001 -- as above
        report(_COMMAND, error)


def _post(client: ApiClient, messages: Sequence[dict[str, Any]]) -> None:
    """Send the messages as lines of JSON. Their key makes a repeated request the same one."""
    body = b"".join(codec.dumps(each) + b"\n" for each in messages)
    key = {"Idempotency-Key": messages[-1]["uuid"]}
    client.post(_MESSAGES, body, "application/x-ndjson", key)


def _publish(session_id: str, messages: Sequence[dict[str, Any]]) -> None:
    """Publish the messages. Raises ContextgaugeError where Kafka does not take them."""
    from contextgauge import Publisher  # noqa: PLC0415 -- the Kafka client

    def ignore(_: str) -> None:
        """Do nothing: a strict publisher raises."""

    with Publisher(
        when_full="wait", strict=True, close_timeout_s=_REQUEST_S, on_problem=ignore
    ) as publisher:
        for each in messages:
            publisher.publish(each, session_id=session_id)
