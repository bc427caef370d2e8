"""A message under way in its session: its chain, what it emits, and the attempt machine."""

from datetime import UTC, datetime

from bench.peers.quix.parts import (
    COMPLETE,
    FAILED,
    FORCED,
    GAP_MS,
    MOVES,
    NEW_CHAIN,
    PROGRESS,
    START,
    Doc,
    Json,
    Out,
    record_id,
)


class Attempts:
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
        reported = body.get("timestamp")
        if reported is None:
            time_ms = received_ms
            moment = datetime.fromtimestamp(time_ms // 1000, UTC)
            self.time: str | None = f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"
        else:
            time_ms = self.own_ms = round(datetime.fromisoformat(reported).timestamp() * 1000)
            self.time = reported
        self.subject = self.chain_name()
        chains = session["chains"]
        chain = chains.get(self.subject)
        if chain is None:
            chain = chains[self.subject] = dict(NEW_CHAIN)
        kind = body.get("subagent_type")
        if kind is not None and self.subject != "main":
            chain["kind"] = kind
        self.chain, self.main = chain, chains["main"]
        last = session["last"]
        session["last"] = time_ms
        if last is not None and time_ms - last > GAP_MS:
            self.move("gap")

    def chain_name(self) -> str:
        """Return the message's chain; a tool use is remembered with the agent that it runs."""
        parent: str | None = self.body.get("parent_tool_use_id")
        if parent is None:
            return "main"
        agent: str | None = self.body.get("agent_id")
        aliases: dict[str, str] = self.session["aliases"]
        if agent is None:
            return aliases.get(parent, parent)
        aliases.setdefault(parent, agent)
        return agent

    def emit(
        self, rank: int, subject: str, kind: str, fields: Doc, *extra: str | int | None
    ) -> str:
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

    def move(self, event: str, error: str | None = None) -> list[Json] | None:
        """Move the attempt and emit what belongs to it; return the start of the one before."""
        session = self.session
        before: list[Json] | None = session["start"]
        found = MOVES[session["phase"]].get(event)
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
                self.emit(PROGRESS, "main", "compaction_progress", fields)
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
        self.emit(START, "main", "compaction_start", fields)
        session["start"] = [made, self.own_ms, self.received_ms]

    def fail(self, start: list[Json] | None, is_reported: bool, error: str | None) -> None:  # noqa: FBT001
        """End an attempt without a boundary."""
        words = (error or "").lower()
        outcome = "failed" if is_reported else "unknown"
        if is_reported and "hook" in words and "block" in words:
            outcome = "blocked"
        attempt_id = None if start is None else start[0]
        fields = {
            "attempt_id": attempt_id,
            "outcome": outcome,
            "error": error if is_reported else None,
            "duration_ms": self.passed(start),
        }
        self.emit(FAILED, "main", "compaction_failed", fields, attempt_id)

    def passed(self, start: list[Json] | None) -> int | None:
        """Return the time since a start, by like clocks; None where it is unknown."""
        if start is None:
            return None
        own, live = start[1], start[2]
        if own is not None and self.own_ms is not None:
            passed = self.own_ms - own
        else:
            passed = self.received_ms - live
        return passed if passed > 0 else None

    def complete(self, chain: Doc, after: int | None, rewritten: int | None = None) -> None:
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
        if rewritten is not None:
            fields["cache_rewrite_tokens"] = rewritten
        rank = FORCED if after is None else COMPLETE
        self.emit(rank, self.subject, "compaction_complete", fields, boundary_id)
