"""The hand labels (`README.md`), as lines of their runtimes, and the findings of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.json_codec import dumps, loads
from contextgauge.records import Json
from streams.core.autopsy.autopsy import findings_of

LABELS: Final = Path(__file__).with_name("labels.json")

Line = dict[str, Json]


class Labelled(NamedTuple):
    """An item of a labelled conversation, and what was found of it; None where it was not."""

    case: str
    set: str
    kind: str
    text: str
    label: str
    verdict: str | None


def labelled() -> Iterator[Labelled]:
    """Yield all labelled items."""
    for case in loads(LABELS.read_bytes()):
        reading = ConversationReading()
        for number, line in enumerate(lines_of(case)):
            reading.add(line, f"m{number}")
        (boundary,) = findings_of(reading)
        for message in case["before"]:
            yield from _judged(case, message, boundary.findings)


def _judged(case: dict[str, Any], message: dict[str, Any], findings: Any) -> Iterator[Labelled]:
    wanted = []
    if "label" in message:
        kinds = ("turn", "request") if "user" in message else ("decision",)
        wanted.append((kinds, message.get("user") or message["agent"], message["label"]))
    if "file" in message:
        wanted.append((("file",), _path(message["call"][1]), message["file"]))
    if "error" in message:
        wanted.append((("error",), message["result"], message["error"]))
    for kinds, text, label in wanted:
        verdicts = [
            each.trace.verdict
            for each in findings
            if each.item.kind in kinds and each.item.text.split("\n")[0] in text
        ]
        yield Labelled(
            case["name"],
            case["set"],
            kinds[0],
            text,
            label,
            verdicts[0] if len(verdicts) == 1 else None,
        )


def _path(arguments: dict[str, Any]) -> str:
    path: str = arguments.get("file_path") or arguments["command"][-1].split()[-1]
    return path


def lines_of(case: dict[str, Any]) -> list[Line]:
    """Return a labelled conversation as its runtime writes it."""
    return _codex(case) if case["runtime"] == "codex" else _claude_code(case)


def _claude_code(case: dict[str, Any]) -> list[Line]:
    lines: list[Line] = []

    def put(role: str, content: Json, **more: Json) -> None:
        number = len(lines)
        lines.append(
            {
                "type": role,
                "uuid": f"l{number}",
                "sessionId": case["name"],
                "cwd": case["folder"],
                "message": {"role": role, "content": content},
                **more,
            }
        )

    for number, message in enumerate(case["before"]):
        if "user" in message:
            put("user", message["user"])
        elif "agent" in message:
            put("assistant", [{"type": "text", "text": message["agent"]}])
        else:
            name, arguments = message["call"]
            put(
                "assistant",
                [{"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments}],
            )
            result: dict[str, Json] = {
                "type": "tool_result",
                "tool_use_id": f"t{number}",
                "content": message["result"],
            }
            if message.get("is_error"):
                result["is_error"] = True
            put("user", [result])
    metadata: dict[str, Json] = {"trigger": "auto", "preTokens": 150_000}
    if preserved := case.get("preserved"):
        metadata["preservedSegment"] = {
            "headUuid": lines[-preserved]["uuid"],
            "anchorUuid": "summary",
            "tailUuid": lines[-1]["uuid"],
        }
    lines.append(
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "boundary",
            "sessionId": case["name"],
            "compactMetadata": metadata,
        }
    )
    put("user", case["after"], isCompactSummary=True)
    return lines


def _codex(case: dict[str, Any]) -> list[Line]:
    lines: list[Line] = [
        {"type": "session_meta", "payload": {"id": case["name"], "cwd": case["folder"]}}
    ]

    def put(**payload: Json) -> None:
        lines.append(
            {
                "type": "response_item",
                "timestamp": f"2026-01-01T00:00:{len(lines):02}Z",
                "payload": payload,
            }
        )

    for number, message in enumerate(case["before"]):
        if "user" in message:
            put(
                type="message",
                role="user",
                content=[{"type": "input_text", "text": message["user"]}],
            )
        elif "agent" in message:
            put(
                type="message",
                role="assistant",
                content=[{"type": "output_text", "text": message["agent"]}],
            )
        else:
            name, arguments = message["call"]
            put(
                type="function_call",
                name=name,
                arguments=dumps(arguments).decode(),
                call_id=f"t{number}",
            )
            put(type="function_call_output", call_id=f"t{number}", output=message["result"])
    summary: Json = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": case["after"]}],
    }
    lines.append(
        {
            "type": "compacted",
            "payload": {"message": case["after"], "replacement_history": [summary]},
        }
    )
    return lines
