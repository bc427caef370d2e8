"""The rules that Claude's stream exercises, written by hand for speed, as a user of Quix would.

Nothing of the product is used. A session's state is one value: the hashes of the last messages,
then the rest as JSON. Left out is what the workload never has: transcripts, other providers,
compactions inside a response, files that name a session. What the deriver remembers of the past
is remembered here as far as the workload repeats it: the last 64 messages where the deriver
keeps 4 096, the last response of a chain where it keeps 32. That is less work, to this side's
favour; the records are the same.
"""

from collections.abc import Sequence
from hashlib import blake2b, sha256
from typing import NamedTuple

from orjson import dumps, loads

from bench.peers.quix.attempts import Attempts
from bench.peers.quix.parts import (
    BOUNDARY,
    CATALOG,
    DATE,
    DEFAULT_WINDOW,
    EDIT,
    EXHAUSTED,
    EXHAUSTION,
    INFO,
    LIMITS,
    NEW_CHAIN,
    NEW_SESSION,
    READING,
    RESET,
    SEEN,
    SUMMARY,
    THRESHOLDS,
    WARNING,
    Doc,
    Out,
    base_name,
    relevant,
)


class Derived(NamedTuple):
    """What a message gave: the state to keep, the records, the first one's number, the time."""

    state: bytes
    records: Sequence[Out]
    sequence: int
    time: str | None


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
        index = seen.find(hashed)
        while index > 0 and index % 8:
            index = seen.find(hashed, index + 1)
        if index >= 0:
            return None
        session = loads(stored[length:])
    if session is None:
        session = {**NEW_SESSION, "windows": {}, "raw": {}, "exceeded": [], "suffixed": {},
                   "aliases": {}, "compact": [None, None, None],
                   "chains": {"main": dict(NEW_CHAIN)}}  # fmt: skip
    step = Step(session, body, body.get("session_id") or key, cause, received_ms)
    step.apply()
    seen = (seen + hashed)[-SEEN:]
    records = step.records
    sequence = session["sequence"]
    session["sequence"] = sequence + len(records)
    if len(records) > 1:
        records.sort(key=lambda record: record.rank)
    state = bytes((len(seen) // 8,)) + seen + dumps(session)
    return Derived(state, records, sequence + 1, step.time)


class Step(Attempts):
    """One message applied to its session, which it changes in place."""

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
            reported = {"model": model, "runtime": runtime, "runtime_version": version, "cwd": cwd}
            self.emit(INFO, "main", "session_info", reported | {"forked_from": None})
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
        reported = session["windows"].get(name) or session["raw"].get(name)
        if reported is not None:
            return reported, "runtime"
        if name in session["exceeded"]:
            return None, "exceeded"
        listed = session["suffixed"].get(name) or CATALOG.get(name[:-DATE])
        return (DEFAULT_WINDOW, "default") if listed is None else (listed, "catalog")

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
            self.emit(EDIT, self.subject, "context_edit", fields)
        usage = message["usage"]
        for entry in reversed(usage.get("iterations", ())):
            if entry["type"] in ("message", "fallback_message"):
                usage = entry
                break
        reported = usage["input_tokens"]
        creation, read = usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]
        counts = [reported, creation, read]
        if reported + creation + read > 0 and chain["counts"] != counts:
            chain["counts"] = counts
            by_age = usage.get("cache_creation") or {}
            self.read(key, reported, creation, read, by_age.get("ephemeral_1h_input_tokens"))

    def read(self, key: str, reported: int, creation: int, read: int, in_1h: int | None) -> None:
        """Emit a reading, the completion that it measures and the warning that it causes."""
        chain, name = self.chain, self.subject
        used = reported + creation + read
        if chain["reported"] is None:
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
            "input_tokens": reported,
            "cache_creation_tokens": creation,
            "cache_read_tokens": read,
            "previous_output_tokens": chain["before"],
            "window": window,
            "window_source": source,
            "used_percent": percent,
            "messages": chain["messages"],
            "messages_total": chain["total"],
        }
        if in_1h is not None:
            fields["cache_creation_1h_tokens"] = in_1h
        self.emit(READING, name, "context_reading", fields)
        self.complete(chain, used, creation)
        chain["used"], chain["percent"] = used, percent
        chain["awaited"] = chain["unmeasured"] = None
        if window is None or used * 100 < window * 10:
            return
        announced = chain["level"]
        crossed = [
            threshold
            for threshold in THRESHOLDS
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
                "input_tokens": reported,
                "cache_tokens": creation + read,
                "context_window": window,
                "window_source": source,
            }
            self.emit(WARNING, name, "context_warning", fields, level)

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
                self.emit(SUMMARY, self.subject, "compaction_summary", fields)
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
        if reason in EXHAUSTED:
            self.emit(
                EXHAUSTION, "main", "context_exhausted", {"reason": reason, "tokens_over": None}
            )

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
        if session["usage"] != digest and self.main["reported"] is not None:
            session["usage"] = digest
            self.is_news = True

    def tell_limits(self) -> None:
        """Emit `context_limits` where they are news: main first, then by subject."""
        chains = self.session["chains"]
        for name in sorted(chains, key=lambda name: (name != "main", name)):
            chain = chains[name]
            reported = chain["reported"]
            if chain["model"] is None and reported is None and name != self.first_read:
                continue
            limits = [*self.window_of(chain["model"])]
            if name == "main":
                limits += self.session["compact"]
                due = limits != reported or self.is_news
            else:
                limits += [None, None, None]
                due = reported is not None and reported[0] != limits[0]
            chain["reported"] = limits
            if due:
                fields = {
                    "window": limits[0],
                    "window_source": limits[1],
                    "auto_compact_enabled": limits[2],
                    "auto_compact_threshold": limits[3],
                    "effective_window": limits[4],
                    "auto_compact_source": None,
                    "total_tokens": None,
                    "categories": None,
                    "message_breakdown": None,
                }
                if name == "main" and self.answer is not None:
                    fields |= self.answer
                self.emit(LIMITS, name, "context_limits", fields)

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
            "messages_total": chain["total"],
            "metadata": metadata,
        }
        made = self.emit(BOUNDARY, name, "compact_boundary", fields)
        preserved = metadata.get("preserved_messages") or metadata.get("preserved_segment") or {}
        chain["used"] = chain["percent"] = None
        chain["messages"] = chain["since"] = chain["level"] = 0
        chain["awaited"] = [made, preserved.get("anchor_uuid")]
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
        self.emit(RESET, name, "context_reset", {"reason": reason})
        self.complete(chain, None)
        chain["used"] = chain["percent"] = chain["unmeasured"] = None
        chain["messages"] = chain["level"] = 0
