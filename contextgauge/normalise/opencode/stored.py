"""The JSON files in which opencode kept sessions before 1.2, as the lines that its database gives.

Checked against opencode 0.5 to 1.1 (packages/opencode/src: storage/storage.ts, session/index.ts,
message-v2.ts, prompt.ts and compaction.ts). A session, a message and a part have a file each. Up to
1.0 a summary had no part with its usage: its message has it, and is complete once its time says so.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from contextgauge.normalise.adapter import Joined, Sign
from contextgauge.normalise.fields import count, flag, long_name, mapping, name, text
from contextgauge.normalise.signals import Body
from contextgauge.record_words import Runtime
from contextgauge.records import Json

_MADE: Final = re.compile(r"[a-z]+_([0-9a-f]{9})[0-9a-f]{3}")
"""How an id begins: with the last 36 bits of its time in milliseconds, and a count."""

_ROUND_MS: Final = 1 << 36
"""An id has the lowest 36 bits of its time: they begin again every 2.2 years."""

SESSION: Final[Sign] = {
    "id": str,
    "version": str,
    "title": str,
    "time.created": int,
    "time.updated": int,
}

_READ: Final = frozenset({"step-finish", "compaction", "text"})


def joined(runtime: Runtime) -> Joined:
    """Return how a session is read, as 0.6 and later have it or, in a project's folder, 0.3."""
    return Joined(
        ".json",
        ("../../message/{}/*.json", "../message/{}/*.json", "../part/{}/*/*.json"),
        partial(lines, runtime),
        below="../../part/{}/*.json",
        is_kept=is_kept,
        above="parentID",
        title="title",
    )


def is_kept(document: Body) -> bool:
    """Return whether a document is a message, or a part that may be a line: most are of tools."""
    return "role" in document or document.get("type") in _READ


def lines(runtime: Runtime, session: Body, others: Sequence[Sequence[Body]]) -> Iterator[Body]:
    """Yield a session's lines, by the ids of messages and parts: those are in order of time.

    Messages that are older than the session are copies of another's.
    """
    *listed, above = others
    named = {name(each, "id"): each for listing in listed for each in listing}
    documents = {key: named[key] for key in sorted(filter(None, named))}
    messages = {key: each for key, each in documents.items() if "role" in each}
    parts: dict[str | None, list[Body]] = {}
    for key, each in documents.items():
        if key not in messages:
            parts.setdefault(name(each, "messageID"), []).append(each)
    own = name(session, "id")
    main = name(above[-1], "id") if above else own
    begun_ms = _created_ms(session) or 0
    folders = (long_name(mapping(each, "path") or {}, "cwd") for each in messages.values())
    directory = long_name(session, "directory") or next(filter(None, folders), None)
    shared: Body = {
        "sessionID": main,
        "agentId": own if main != own else None,
        "isSidechain": main != own,
        "session": {"directory": directory, "version": name(session, "version")},
    }
    for key, message in messages.items():
        of_message = parts.get(key, [])
        if (_created_ms(message) or 0) < begun_ms:
            continue
        asked = _asked(parts.get(name(message, "parentID"), []))
        for part in (_of_summary(each, message, of_message) for each in of_message):
            if part.get("type") != "text" or message.get("role") == "user":
                yield {
                    "runtime": runtime,
                    "type": str(part["type"]).replace("-", "_"),
                    "timestamp": _written_ms(part, message),
                    **shared,
                    "part": _part(part),
                    "message": {**_message(message), "auto": asked},
                }


def _asked(parts: Sequence[Body]) -> Json:
    """Return whether the compaction that a message asks for is automatic; None without one."""
    return next((flag(each, "auto") for each in parts if each.get("type") == "compaction"), None)


def _of_summary(part: Body, message: Body, of_message: Sequence[Body]) -> Body:
    """Return the last text of a complete summary without a usage as a part that has it.

    It has the texts before it, too: the message is one compaction.
    """
    is_summary = part.get("type") == "text" and flag(message, "summary")
    if not is_summary or count(mapping(message, "time") or {}, "completed") is None:
        return part
    if any(each.get("type") == "step-finish" for each in of_message):
        return part
    written = [each for each in of_message if each.get("type") == "text"]
    if part is not written[-1]:
        return part
    texts = "\n".join(filter(None, (text(each, "text") for each in written)))
    return {**part, "type": "step-finish", "tokens": message.get("tokens"), "text": texts}


def _part(part: Body) -> Body:
    own: Body = {each: part.get(each) for each in ("id", "messageID", "type", "tokens")}
    flags: Body = {each: flag(part, each) for each in ("auto", "synthetic", "ignored")}
    return {**own, **flags, "text": text(part, "text")}


def _message(message: Body) -> Body:
    own: Body = {each: message.get(each) for each in ("role", "modelID", "providerID")}
    return {**own, "summary": flag(message, "summary")}


def _created_ms(document: Body) -> int | None:
    return count(mapping(document, "time") or {}, "created")


def _written_ms(part: Body, message: Body) -> Json:
    """Return when a part was written: its id says it, within the time of its message."""
    begun_ms = _created_ms(message)
    ended_ms = count(mapping(message, "time") or {}, "completed")
    made = _MADE.match(name(part, "id") or "")
    if begun_ms is None or made is None:
        return begun_ms if ended_ms is None else ended_ms
    since_ms = (int(made[1], 16) - begun_ms) % _ROUND_MS
    written_ms = begun_ms + (since_ms if since_ms < _ROUND_MS // 2 else 0)
    return written_ms if ended_ms is None else min(written_ms, ended_ms)
