"""What the tools answer: the few figures of a session that an agent can act on.

Short, because each answer fills the window that it is about.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streams.cli.mcp.agent_sessions import Document, FoundSession
from streams.codec.cloudevents import rfc3339

_SUBAGENTS: Final = 8


def context_answer(session: FoundSession) -> Document:
    """Return how full a session's window is, by what, and when it is compacted."""
    document = session.document
    answer = _head(document) | {"found_by": session.found_by}
    if session.others:
        answer["also_active_in_this_folder"] = list(session.others)
    chain = _leading(document)
    answer |= _size(document, chain) | _compacts(document, chain) | _filled(document, chain)
    compactions = document["compactions"]
    own = [each for each in compactions["last"] if not each["inherited"]]
    answer |= {
        "compactions": sum(compactions[name] for name in _TRIGGERS),
        "failed_compactions": compactions["failed"],
        "latest_compaction": _brief(own[0]) if own else None,
    }
    others = [each for name, each in document["chains"].items() if each is not chain]
    measured = [each for each in others if each["used_tokens"] is not None]
    if measured:
        answer["subagents"] = [
            {
                "name": each["chain"],
                "used_tokens": each["used_tokens"],
                "window_tokens": each["window"],
            }
            for each in measured[-_SUBAGENTS:]
        ]
    return answer


_TRIGGERS: Final = ("manual", "automatic", "idle", "unknown_trigger")


def session_answer(document: Document) -> Document:
    """Return a session in a line of the list."""
    chain = _leading(document)
    compacts = _compacts(document, chain)
    return {
        **_head(document),
        **_size(document, chain),
        "tokens_until_compaction": compacts.get("tokens_until_compaction"),
        "compactions": sum(document["compactions"][name] for name in _TRIGGERS),
        "last_active": _time(document["last_ms"]),
    }


def compactions_answer(
    session_id: str, compactions: Sequence[Document], limit: int, *, summaries: bool
) -> Document:
    """Return the newest compactions of a session."""
    shown = [
        _brief(each) | ({"summary": each["summary"]} if summaries else {})
        for each in compactions[:limit]
    ]
    return {"session_id": session_id, "total": len(compactions), "compactions": shown}


def _head(document: Document) -> Document:
    identity = document["identity"]
    chain = _leading(document)
    return {
        "session_id": document["session_id"],
        "folder": identity["cwd"],
        "runtime": identity["runtime"],
        "model": None if chain is None else chain["model"],
        "state": document["status"]["state"],
    }


def _leading(document: Document) -> Document | None:
    name = document["status"]["leading_chain"]
    chain: Document | None = document["chains"].get(name)
    return chain


def _size(document: Document, chain: Document | None) -> Document:
    """Return the size; no percentage of a window that is contradicted."""
    if chain is None or chain["used_tokens"] is None:
        return {"used_tokens": None, "window_tokens": None, "used_percent": None}
    doubt = document["status"]["window_doubts"].get(chain["chain"])
    size = {
        "used_tokens": chain["used_tokens"],
        "window_tokens": chain["window"],
        "used_percent": None if doubt == "contradicted" else chain["used_percent"],
    }
    return size if doubt is None else size | {"window_is": doubt}


def _compacts(document: Document, chain: Document | None) -> Document:
    """Return when the session is compacted automatically, as far as that is known."""
    if chain is None:
        return {"tokens_until_compaction": None}
    status, name = document["status"], chain["chain"]
    until = status["until_compaction"].get(name)
    off = status["switched_off_by"].get(name)
    if off is not None:
        return {"tokens_until_compaction": None, "automatic_compaction_is_off_by": off}
    if until is None:
        return {"tokens_until_compaction": None}
    return {
        "tokens_until_compaction": until["tokens"],
        "compacts_at_tokens": until["threshold_tokens"],
        "compacts_by": until["source"],
        "is_estimated": until["estimated"],
    }


def _filled(document: Document, chain: Document | None) -> Document:
    """Return what fills the window: as the runtime reports it, else as estimated of its file."""
    categories = None if chain is None else chain["categories"]
    if categories is not None:
        parts = [{"kind": each["name"], "tokens": each["tokens"]} for each in categories]
        return {"filled_by": parts, "filled_by_is": "reported"}
    filling = document.get("filling")
    if filling is None:
        return {"filled_by": None, "filled_by_is_unknown": document.get("filling_unknown")}
    parts = [
        {name: value for name, value in each.items() if value not in ([], None)}
        for each in filling
        if each["tokens"]
    ]
    return {"filled_by": parts, "filled_by_is": "estimated"}


def _brief(compaction: Mapping[str, Any]) -> Document:
    names = ("number", "trigger", "tokens_before", "tokens_after", "tokens_saved", "duration_ms")
    brief = {name: compaction[name] for name in names}
    if compaction["chain"] != "main":
        brief["chain"] = compaction["chain"]
    return brief | {"time": _time(compaction["time_ms"])}


def _time(time_ms: int | None) -> str | None:
    return None if time_ms is None else rfc3339(time_ms)
