"""The rules that Claude's stream exercises, written by hand for speed, as a user of Quix would.

Nothing of the product is used. A session's state is one value: the hashes of the last messages,
then the rest as JSON. Left out is what the workload never has: transcripts, other providers,
compactions inside a response, files that name a session. What the deriver remembers of the past
is remembered here as far as the workload repeats it: the last 64 messages where the deriver
keeps 4 096, the last response of a chain where it keeps 32. That is less work, to this side's
favour; the records are the same.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b, sha1, sha256
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import NAMESPACE_URL, uuid5

from orjson import dumps, loads

Json: TypeAlias = Any
Doc: TypeAlias = dict[str, Json]

_SEEN: Final = 64 * 8
"""Bytes of the remembered hashes: a resumed session sends its last 40 messages again."""

_DEFAULT_WINDOW: Final = 200_000
_CATALOG: Final = {"claude-sonnet-4-5": 200_000, "claude-opus-4-5": 200_000}
"""Windows of the workload's models, by the name before its date."""
_DATE: Final = len("-20250929")
_THRESHOLDS: Final = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
_GAP_MS: Final = 6 * 3_600_000
_EXHAUSTED: Final = ("prompt_too_long", "blocking_limit", "rapid_refill_breaker")

_NAMESPACE: Final = sha1(uuid5(NAMESPACE_URL, "urn:contextgauge:records").bytes)
_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}

_NEW_CHAIN: Final[Doc] = {
    "model": None, "kind": None, "key": None, "counts": None, "before": None, "edited": False,
    "output": None, "used": None, "percent": None, "messages": 0, "since": 0, "total": 0,
    "level": 0, "number": 0, "awaited": None, "unmeasured": None, "told": None,
}  # fmt: skip
_NEW_SESSION: Final[Doc] = {
    "sequence": 0, "last": None, "phase": "idle", "start": None, "hint": None, "reset": None,
    "facts": None, "windows": {}, "raw": {}, "exceeded": [], "suffix": None, "suffixed": {},
    "aliases": {}, "compact": [None, None, None], "usage": None,
}  # fmt: skip

# The order of the records of one message.
(
    _INFO, _FAILED, _START, _PROGRESS, _RESET, _FORCED, _BOUNDARY, _SUMMARY, _LIMITS, _EDIT,
    _READING, _COMPLETE, _WARNING, _EXHAUSTION,
) = range(14)  # fmt: skip

# The attempt machine: phase and event give the next phase and what is emitted.
_MOVES: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "idle": {"compacting": ("open", "s"), "failed": ("idle", "f")},
    "open": {
        "compacting": ("open", "h"), "success": ("succeeded", ""), "cleared": ("ended", ""),
        "failed": ("idle", "f"), "boundary": ("idle", ""), "result": ("idle", "u"),
        "reset": ("idle", "u"), "response": ("idle", "u"), "gap": ("idle", "u"),
    },
    "succeeded": {
        "compacting": ("open", "us"), "failed": ("idle", "f"), "boundary": ("idle", ""),
        "reset": ("idle", "u"), "gap": ("idle", "u"),
    },
    "ended": {
        "compacting": ("open", "us"), "success": ("succeeded", ""), "failed": ("idle", "f"),
        "boundary": ("idle", ""), "result": ("idle", "u"), "reset": ("idle", "u"),
        "response": ("idle", "u"), "gap": ("idle", "u"),
    },
}  # fmt: skip


class Out(NamedTuple):
    """One record: its place among those of the message, its id, and what it says."""

    rank: int
    record_id: str
    kind: str
    subject: str
    data: Doc


class Derived(NamedTuple):
    """What a message gave: the state to keep, the records, the first one's number, the time."""

    state: bytes
    records: Sequence[Out]
    sequence: int
    time: str | None


def record_id(*name: str | int | None) -> str:
    """Return the UUIDv5 of a record's name."""
    digest = _NAMESPACE.copy()
    digest.update(dumps(name))
    code = digest.hexdigest()
    return f"{code[:8]}-{code[8:12]}-5{code[13:16]}-{_VARIANT[code[16]]}{code[17:20]}-{code[20:32]}"


def base_name(model: str) -> tuple[str, int | None]:
    """Split a `[1m]` off a model's name."""
    if not model.endswith("]"):
        return model, None
    name, _, suffix = model[:-1].rpartition("[")
    return name, int(suffix[:-1]) * (1_000_000 if suffix[-1] in "mM" else 1_000)


def relevant(body: Doc) -> bool:
    """Return whether a message can change any record."""
    kind = body.get("type")
    if kind in ("assistant", "result", "conversation_reset", "control_response"):
        return True
    if kind == "stream_event":
        return body["event"]["type"] in ("message_start", "message_delta")
    if kind == "user":
        content = body["message"]["content"]
        text = content if isinstance(content, str) else content[0].get("text", "")
        if body.get("isReplay") or text.startswith(("<command-", "<local-command-")):
            return text.startswith("<command-name>/c")
        return True
    if kind != "system":
        return False
    subtype = body.get("subtype")
    if subtype == "status":
        return body.get("status", "") in ("compacting", None)
    if subtype in ("hook_started", "hook_response"):
        return body.get("hook_event") == "PreCompact"
    return subtype in ("init", "compact_boundary")


def derive(stored: bytes | None, value: bytes, key: str, received_ms: int) -> Derived | None:
    """Apply one message to its session; None where it changes nothing."""
    body = loads(value)
    if not relevant(body):
        return None
    cause = body.get("uuid") or sha256(value).hexdigest()
    hashed = blake2b(cause.encode(), digest_size=8).digest()
    seen, session = b"", None
    if stored is not None:
        length = stored[0] * 8 + 1
        seen = stored[1:length]
        at = seen.find(hashed)
        while at > 0 and at % 8:
            at = seen.find(hashed, at + 1)
        if at >= 0:
            return None
        session = loads(stored[length:])
    if session is None:
        session = {**_NEW_SESSION, "windows": {}, "raw": {}, "exceeded": [], "suffixed": {},
                   "aliases": {}, "compact": [None, None, None],
                   "chains": {"main": dict(_NEW_CHAIN)}}  # fmt: skip
    step = Step(session, body, body.get("session_id") or key, cause, received_ms)
    step.apply()
    seen = (seen + hashed)[-_SEEN:]
    records = step.records
    sequence = session["sequence"]
    session["sequence"] = sequence + len(records)
    if len(records) > 1:
        records.sort(key=lambda record: record.rank)
    state = bytes((len(seen) // 8,)) + seen + dumps(session)
    return Derived(state, records, sequence + 1, step.time)


class Step:
    """One message applied to its session, which it changes in place."""

    def __init__(
        self, session: Doc, body: Doc, session_id: str, cause: str, received_ms: int
    ) -> None:
        self.session, self.body = session, body
        self.session_id, self.cause = session_id, cause
        self.received_ms = received_ms
        self.own_ms: int | None = None
        self.records: list[Out] = []
        self.touched = self.is_news = False
        self.answer: Doc | None = None
        self.first_read: str | None = None
        self.was_reset, session["reset"] = session["reset"], None
        told = body.get("timestamp")
        if told is None:
            time_ms = received_ms
            moment = datetime.fromtimestamp(time_ms // 1000, UTC)
            self.time: str | None = f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"
        else:
            time_ms = self.own_ms = round(datetime.fromisoformat(told).timestamp() * 1000)
            self.time = told
        self.subject = self.chain_name()
        chains = session["chains"]
        chain = chains.get(self.subject)
        if chain is None:
            chain = chains[self.subject] = dict(_NEW_CHAIN)
        kind = body.get("subagent_type")
        if kind is not None and self.subject != "main":
            chain["kind"] = kind
        self.chain, self.main = chain, chains["main"]
        last = session["last"]
        session["last"] = time_ms
        if last is not None and time_ms - last > _GAP_MS:
            self.move("gap")

    def chain_name(self) -> str:
        """Return the message's chain; a tool use is remembered with the agent that it runs."""
        parent = self.body.get("parent_tool_use_id")
        if parent is None:
            return "main"
        agent: str | None = self.body.get("agent_id")
        aliases: dict[str, str] = self.session["aliases"]
        if agent is None:
            return aliases.get(parent, parent)
        aliases.setdefault(parent, agent)
        return agent

    def emit(self, rank: int, subject: str, kind: str, fields: Doc, *extra: str | int) -> str:
        """Add a record and return its id."""
        made = record_id(self.session_id, subject, kind, self.cause, *extra)
        chain = self.session["chains"][subject]
        data = {
            "session_id": self.session_id,
            "chain": subject,
            "model": chain["model"],
            "task_id": None,
            "subagent_type": chain["kind"],
        }
        data.update(fields)
        self.records.append(Out(rank, made, kind, subject, data))
        return made

    def apply(self) -> None:
        """Apply the message by its type."""
        body = self.body
        match body["type"]:
            case "assistant":
                self.respond(body["message"])
            case "user":
                self.user()
            case "stream_event":
                event = body["event"]
                if event["type"] == "message_start":
                    self.respond(event["message"])
                elif self.chain["key"] is not None:
                    self.chain["output"] = event["usage"]["output_tokens"]
            case "result":
                self.result()
            case "conversation_reset":
                self.reset(body.get("trigger") or "clear")
            case "control_response":
                self.control(body["response"]["response"])
            case _:
                self.system()
        if self.touched:
            self.tell_limits()

    def system(self) -> None:
        """Apply a `system` message."""
        body = self.body
        subtype = body["subtype"]
        if subtype == "init":
            self.init()
        elif subtype == "compact_boundary":
            self.bound(body.get("compact_metadata") or {})
        elif subtype == "status":
            result = body.get("compact_result")
            if body["status"] is not None:
                self.move("compacting")
            elif result == "success":
                self.move("success")
            elif result == "failed":
                self.move("failed", body.get("compact_error"))
            else:
                self.move("cleared")
        else:
            trigger = body["hook_name"].rpartition(":")[2]
            if trigger in ("manual", "auto"):
                self.session["hint"] = trigger

    def init(self) -> None:
        """Take the session's facts and the main chain's model."""
        body, session = self.body, self.session
        model = body["model"]
        facts = ["claude-code", body.get("claude_code_version"), model, body.get("cwd")]
        if session["facts"] != facts:
            session["facts"] = facts
            runtime, version, _, cwd = facts
            told = {"model": model, "runtime": runtime, "runtime_version": version, "cwd": cwd}
            self.emit(_INFO, "main", "session_info", told | {"forked_from": None})
        base, suffix = base_name(model)
        suffixed = session["suffixed"]
        if (session["suffix"], suffixed.get(base)) != (suffix, suffix):
            session["suffix"] = suffix
            if suffix is None:
                suffixed.pop(base, None)
            else:
                suffixed[base] = suffix
            self.touched = True
        self.set_model(self.main, base)

    def set_model(self, chain: Doc, model: str) -> None:
        """Set a chain's model."""
        if chain["model"] != model:
            chain["model"] = model
            self.touched = True

    def window_of(self, model: str | None) -> tuple[int | None, str]:
        """Return a model's window and where it is known from."""
        session, name = self.session, model or ""
        told = session["windows"].get(name) or session["raw"].get(name)
        if told is not None:
            return told, "runtime"
        if name in session["exceeded"]:
            return None, "exceeded"
        listed = session["suffixed"].get(name) or _CATALOG.get(name[:-_DATE])
        return (_DEFAULT_WINDOW, "default") if listed is None else (listed, "catalog")

    def respond(self, message: Doc) -> None:
        """Apply one frame of a response."""
        chain = self.chain
        self.set_model(chain, base_name(message["model"])[0])
        key = message["id"]
        if chain["key"] != key:
            if self.subject == "main":
                self.move("response")
            chain["key"], chain["counts"], chain["edited"] = key, None, False
            chain["before"], chain["output"] = chain["output"], None
            chain["messages"] += 1
            chain["since"] += 1
            chain["total"] += 1
        management = message.get("context_management")
        if management is not None and not chain["edited"] and management["applied_edits"]:
            chain["edited"] = True
            edits = management["applied_edits"]
            cleared = sum(edit["cleared_input_tokens"] for edit in edits)
            fields = {"edits": edits, "cleared_input_tokens": cleared}
            self.emit(_EDIT, self.subject, "context_edit", fields)
        usage = message["usage"]
        for entry in reversed(usage.get("iterations", ())):
            if entry["type"] in ("message", "fallback_message"):
                usage = entry
                break
        told = usage["input_tokens"]
        creation, read = usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]
        counts = [told, creation, read]
        if told + creation + read > 0 and chain["counts"] != counts:
            chain["counts"] = counts
            self.read(key, told, creation, read)

    def read(self, key: str, told: int, creation: int, read: int) -> None:
        """Emit a reading, the completion that it measures and the warning that it causes."""
        chain, name = self.chain, self.subject
        used = told + creation + read
        if chain["told"] is None:
            self.touched, self.first_read = True, name
        window, source = self.window_of(chain["model"])
        if window is not None and used > window and source != "runtime":
            self.session["exceeded"].append(chain["model"] or "")
            self.touched = True
            window, source = None, "exceeded"
        percent = None if window is None else used * 10_000 // window / 100
        fields = {
            "response_id": key,
            "used_tokens": used,
            "input_tokens": told,
            "cache_creation_tokens": creation,
            "cache_read_tokens": read,
            "previous_output_tokens": chain["before"],
            "window": window,
            "window_source": source,
            "used_percent": percent,
            "messages": chain["messages"],
            "messages_total": chain["total"],
        }
        self.emit(_READING, name, "context_reading", fields)
        self.complete(chain, used)
        chain["used"], chain["percent"] = used, percent
        chain["awaited"] = chain["unmeasured"] = None
        if window is None or used * 100 < window * 10:
            return
        announced = chain["level"]
        crossed = [
            threshold
            for threshold in _THRESHOLDS
            if threshold > announced and used * 100 >= window * threshold
        ]
        if crossed:
            level = chain["level"] = crossed[-1]
            fields = {
                "threshold_percent": level,
                "thresholds_crossed": crossed,
                "context_used_percent": percent,
                "context_remaining_percent": (window - used) * 10_000 // window / 100,
                "used_tokens": used,
                "input_tokens": told,
                "cache_tokens": creation + read,
                "context_window": window,
                "window_source": source,
            }
            self.emit(_WARNING, name, "context_warning", fields, level)

    def user(self) -> None:
        """Take a user line as a summary, a command, or count it."""
        body, chain, session = self.body, self.chain, self.session
        content = body["message"]["content"]
        text = content if isinstance(content, str) else content[0].get("text", "")
        if text.startswith(("/compact", "<command-name>/compact")):
            if self.subject == "main":
                session["hint"] = "manual"
        elif text.startswith("<command-name>/clear"):
            self.reset("clear")
        if body.get("isSynthetic"):
            awaited = chain["awaited"]
            if awaited is not None and awaited[1] in (None, body.get("uuid")):
                whole = content
                if not isinstance(content, str):
                    whole = "\n\n".join(block["text"] for block in content if "text" in block)
                fields = {"boundary_id": awaited[0], "summary": whole}
                self.emit(_SUMMARY, self.subject, "compaction_summary", fields)
                chain["awaited"] = None
        elif not text.startswith("<command-"):
            chain["messages"] += 1
            chain["since"] += 1
            chain["total"] += 1

    def result(self) -> None:
        """Apply a turn's end, the windows that it tells, and why it ended."""
        body, session = self.body, self.session
        self.move("result")
        session["hint"] = None
        windows = session["windows"]
        for name, entry in body["modelUsage"].items():
            base, window = base_name(name)[0], entry["contextWindow"]
            if windows.get(base) != window:
                windows[base] = window
                self.touched = True
        reason = body.get("terminal_reason")
        if reason in _EXHAUSTED:
            self.emit(_EXHAUSTION, "main", "context_exhausted", {"reason": reason})

    def control(self, answer: Doc) -> None:
        """Take an answer to `get_context_usage`."""
        session, raw = self.session, answer["rawMaxTokens"]
        compact = [answer["isAutoCompactEnabled"], answer.get("autoCompactThreshold"), raw]
        if compact[1] is None:
            compact[1] = session["compact"][1]
        session["compact"] = compact
        session["raw"][base_name(answer["model"])[0]] = raw
        total = answer["totalTokens"]
        listed = [
            {name: row.get(name) for name in ("id", "name", "kind", "tokens")}
            for row in answer["categories"]
        ]
        digest = blake2b(dumps([total, listed]), digest_size=8).hexdigest()
        self.touched = True
        self.answer = {"total_tokens": total, "categories": listed}
        if session["usage"] != digest and self.main["told"] is not None:
            session["usage"] = digest
            self.is_news = True

    def tell_limits(self) -> None:
        """Emit `context_limits` where they are news: main first, then by subject."""
        chains = self.session["chains"]
        for name in sorted(chains, key=lambda name: (name != "main", name)):
            chain = chains[name]
            told = chain["told"]
            if chain["model"] is None and told is None and name != self.first_read:
                continue
            limits = [*self.window_of(chain["model"])]
            if name == "main":
                limits += self.session["compact"]
                due = limits != told or self.is_news
            else:
                limits += [None, None, None]
                due = told is not None and told[0] != limits[0]
            chain["told"] = limits
            if due:
                fields = {
                    "window": limits[0],
                    "window_source": limits[1],
                    "auto_compact_enabled": limits[2],
                    "auto_compact_threshold": limits[3],
                    "effective_window": limits[4],
                    "total_tokens": None,
                    "categories": None,
                }
                if name == "main" and self.answer is not None:
                    fields |= self.answer
                self.emit(_LIMITS, name, "context_limits", fields)

    def bound(self, metadata: Doc) -> None:
        """Apply a boundary: a new epoch, size unknown."""
        chain, name = self.chain, self.subject
        start = self.move("boundary")
        self.session["hint"] = None
        self.complete(chain, None)
        before, source = metadata.get("pre_tokens"), "reported"
        if before is None:
            before, source = chain["used"], "last_reading"
        duration, duration_source = metadata.get("duration_ms"), "reported"
        if duration is None:
            duration, duration_source = self.passed(start), "paired"
        trigger = metadata.get("trigger")
        chain["number"] += 1
        fields = {
            "attempt_id": None if start is None else start[0],
            "trigger": trigger,
            "pre_tokens": before,
            "pre_tokens_source": None if before is None else source,
            "post_tokens": metadata.get("post_tokens"),
            "duration_ms": duration,
            "duration_source": None if duration is None else duration_source,
            "number": chain["number"],
            "messages_since_last": chain["since"],
            "metadata": metadata,
        }
        made = self.emit(_BOUNDARY, name, "compact_boundary", fields)
        kept = metadata.get("preserved_messages") or metadata.get("preserved_segment") or {}
        chain["used"] = chain["percent"] = None
        chain["messages"] = chain["since"] = chain["level"] = 0
        chain["awaited"] = [made, kept.get("anchor_uuid")]
        chain["unmeasured"] = [made, trigger, before, duration]

    def reset(self, reason: str) -> None:
        """Apply a cleared conversation; the second form of one clear is nothing."""
        name, chain = self.subject, self.chain
        self.session["reset"] = name
        if self.was_reset == name:
            return
        if name == "main":
            self.move("reset")
            self.session["hint"] = None
        self.emit(_RESET, name, "context_reset", {"reason": reason})
        self.complete(chain, None)
        chain["used"] = chain["percent"] = chain["unmeasured"] = None
        chain["messages"] = chain["level"] = 0

    def complete(self, chain: Doc, after: int | None) -> None:
        """Emit the completion of the chain's unmeasured boundary, if there is one."""
        pending = chain["unmeasured"]
        if pending is None:
            return
        boundary_id, trigger, before, duration = pending
        fields = {
            "boundary_id": boundary_id,
            "trigger": trigger,
            "tokens_before": before,
            "tokens_after": after,
            "tokens_saved": None if before is None or after is None else before - after,
            "duration_ms": duration,
        }
        rank = _FORCED if after is None else _COMPLETE
        self.emit(rank, self.subject, "compaction_complete", fields, boundary_id)

    def move(self, event: str, error: str | None = None) -> list[Json] | None:
        """Move the attempt and emit what belongs to it; return the start of the one before."""
        session = self.session
        before: list[Json] | None = session["start"]
        found = _MOVES[session["phase"]].get(event)
        if found is None:
            return before
        session["phase"], effects = found
        for effect in effects:
            if effect == "s":
                self.start()
            elif effect == "h":
                fields = {"attempt_id": None, "elapsed_ms": self.passed(before)}
                if before is not None:
                    fields["attempt_id"] = before[0]
                self.emit(_PROGRESS, "main", "compaction_progress", fields)
            else:
                self.fail(before, effect == "f", error)
        if session["phase"] == "idle":
            session["start"] = None
        return before

    def start(self) -> None:
        """Open an attempt."""
        session, main = self.session, self.main
        hint, session["hint"] = session["hint"], None
        reason = None if hint is None else "manual" if hint == "manual" else "threshold_exceeded"
        made = record_id(self.session_id, "main", "compaction_start", self.cause)
        fields = {
            "attempt_id": made,
            "trigger_reason": reason,
            "context_used_percent": main["percent"],
            "used_tokens": main["used"],
        }
        self.emit(_START, "main", "compaction_start", fields)
        session["start"] = [made, self.own_ms, self.received_ms]

    def fail(self, start: list[Json] | None, is_told: bool, error: str | None) -> None:  # noqa: FBT001
        """End an attempt without a boundary."""
        words = (error or "").lower()
        outcome = "failed" if is_told else "unknown"
        if is_told and "hook" in words and "block" in words:
            outcome = "blocked"
        attempt_id = None if start is None else start[0]
        fields = {
            "attempt_id": attempt_id,
            "outcome": outcome,
            "error": error if is_told else None,
            "duration_ms": self.passed(start),
        }
        self.emit(_FAILED, "main", "compaction_failed", fields, attempt_id)

    def passed(self, start: list[Json] | None) -> int | None:
        """Return the time since a start, by like clocks; None where it cannot be told."""
        if start is None:
            return None
        own, live = start[1], start[2]
        if own is not None and self.own_ms is not None:
            passed = self.own_ms - own
        else:
            passed = self.received_ms - live
        return passed if passed >= 0 else None
