"""What the service publishes to `agent.messages`: a compaction, as a runtime reports its own.

The deriver makes the records of it, by the same rules. Ids are UUIDv5 of command, attempt and
step, so a message that is published twice is known.
"""

from typing import NamedTuple

from schemas.commands import CommandTrigger
from schemas.records import Json
from streams.core.control.ids import id_of

Line = dict[str, Json]


def step_id(command_id: str, attempt: int, step: str) -> str:
    """Return the id of a step's entry or message."""
    return id_of(command_id, attempt, step)


def engine_trigger(trigger: CommandTrigger) -> str:
    """Return the trigger as runtimes report it."""
    return "manual" if trigger == "manual" else "auto"


class Compacted(NamedTuple):
    """What a boundary reports: figures, and what becomes of the conversation by it.

    `plan` names what it covers; `edit` and `receipt` are the engine's, as JSON. `summary` is the
    text that the model sees; None where no message was archived. `is_calling`: a call of the
    model may be under way; its answer will report the size before the compaction.
    """

    tokens_before: int
    tokens_after: int
    duration_ms: int | None
    plan: Line
    edit: Json
    receipt: Line
    summary: str | None
    is_calling: bool = False


class AttemptMessages(NamedTuple):
    """The messages of one attempt of a command. `at` is a time as RFC 3339.

    `cause_id` is the record that the command was given because of, if there was one.
    """

    session_id: str
    command_id: str
    attempt: int
    trigger: CommandTrigger
    cause_id: str | None = None

    def announced(self, at: str) -> list[Line]:
        """Return the beginning: who asked for it, and that it has begun.

        A later attempt is a heartbeat to readers, or takes the place of one that is lost (R15).
        """
        hint: Line = {
            "hook_event_name": "PreCompact",
            "session_id": self.session_id,
            "uuid": self._id("hook"),
            "timestamp": at,
            "trigger": engine_trigger(self.trigger),
        }
        first = [hint] if self.attempt == 1 else []
        return [*first, self._compacting("compacting", at)]

    def heartbeat(self, number: int, at: str) -> Line:
        """Return a sign of life: the `number`th of the attempt."""
        return self._compacting(f"heartbeat-{number}", at)

    def failed(self, reason: str, at: str) -> Line:
        """Return the end of an attempt that left the conversation as it was."""
        return self._status(
            "failed", at, status=None, compact_result="failed", compact_error=reason
        )

    @property
    def boundary_id(self) -> str:
        """The id of the boundary message."""
        return self._id("boundary")

    def completed(self, done: Compacted, at: str) -> list[Line]:
        """Return the result, the boundary with what it does, and the summary."""
        own: Line = {
            "command_id": self.command_id,
            "attempt": self.attempt,
            "reason": "model_change" if self.trigger == "model_change" else None,
            "cause_id": self.cause_id,
            "plan": done.plan,
            "edit": done.edit,
            "receipt": done.receipt,
        }
        if done.is_calling:
            own["during_call"] = True
        metadata: Line = {
            "trigger": engine_trigger(self.trigger),
            "pre_tokens": done.tokens_before,
            "post_tokens": done.tokens_after,
            "contextgauge": own,
        }
        if done.duration_ms is not None:
            metadata |= {"duration_ms": done.duration_ms, "precomputed": True}
        lines = [
            self._status("result", at, status=None, compact_result="success"),
            self._line("boundary", at, type="system", subtype="compact_boundary")
            | {"content": "Conversation compacted", "compact_metadata": metadata},
        ]
        if done.summary is not None:
            message: Line = {"role": "user", "content": done.summary}
            summary = self._line("summary", at, type="user", isCompactSummary=True)
            lines.append(summary | {"message": message})
        return lines

    def _compacting(self, step: str, at: str) -> Line:
        """Return the status of an attempt for which the agent does not wait."""
        own: Line = {"command_id": self.command_id, "attempt": self.attempt, "background": True}
        return self._status(step, at, status="compacting", contextgauge=own)

    def _status(self, step: str, at: str, **fields: Json) -> Line:
        return self._line(step, at, type="system", subtype="status", **fields)

    def _line(self, step: str, at: str, **fields: Json) -> Line:
        own: Line = {"uuid": self._id(step), "session_id": self.session_id, "timestamp": at}
        return {**fields, **own}

    def _id(self, step: str) -> str:
        return step_id(self.command_id, self.attempt, step)
