"""The messages that a hook publishes: a call's answer, and how a compaction went."""

import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, Protocol

from contextgauge.clock import SystemClock
from contextgauge.records import Json

Body = dict[str, Json]

_SESSIONS: Final = 10_000
"""So many sessions are remembered, those that were used last."""


class PublishesMessages(Protocol):
    """A publisher in a `with` block, or what stands for one."""

    def publish(self, message: object, *, session_id: str | None = None) -> object:
        """Publish one message, without waiting for the broker."""


class CallUsage:
    """What one call of a model took, in tokens; None where the framework does not report it.

    `prompt` includes what was read from the cache and written to it.
    """

    def __init__(
        self,
        prompt: int | None,
        *,
        read: int | None = None,
        written: int | None = None,
        output: int | None = None,
    ) -> None:
        self.prompt, self.read, self.written, self.output = prompt, read, written, output

    @property
    def is_reported(self) -> bool:
        """Whether there is a size: frameworks write 0 for what a provider does not report."""
        return bool(self.prompt)

    def as_json(self) -> Body:
        """Return the counts as Anthropic's API has them: what is cached is not in the input."""
        cached = min((self.read or 0) + (self.written or 0), self.prompt or 0)
        return {
            "input_tokens": (self.prompt or 0) - cached,
            "cache_read_input_tokens": self.read,
            "cache_creation_input_tokens": self.written,
            "output_tokens": self.output,
        }


class CountedMessages:
    """Which messages of which sessions were counted; any thread may ask.

    A request has all messages of the conversation again, or some of them, as after a compaction or
    in another node of a graph: so all ids of a session are known for as long as it is one of those
    that were used last. Each takes 8 bytes: two ids of a session of a million messages have the
    same hash once in 30 million such sessions.
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, array[int]] = OrderedDict()
        """The hashes of each session's ids."""
        self._lock = threading.Lock()

    def new(self, session: str, message_ids: Iterable[str]) -> list[str]:
        """Return the messages that are seen for the first time, each once."""
        ids = {hash(name): name for name in message_ids}
        with self._lock:
            known = self._sessions.setdefault(session, array("q"))
            new = ids.keys() - known
            known.extend(new)
            self._sessions.move_to_end(session)
            if len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)
        return [name for key, name in ids.items() if key in new]


class SessionCalls:
    """Publishes the calls of one agent's sessions; any thread may call it.

    `chain` names the subagent whose a call is; None: the session's own.
    """

    def __init__(self, publisher: PublishesMessages) -> None:
        self._publisher = publisher
        self._clock = SystemClock()
        self._counted = CountedMessages()

    def asked(
        self, session: str, message_ids: Iterable[str | None], chain: str | None = None
    ) -> None:
        """Publish that messages of the user or of tools are there; each counts once, by its id."""
        named = (name for name in message_ids if name is not None)
        for name in self._counted.new(session, named):
            user: Body = {"role": "user", "content": []}
            self._publish(session, {"type": "user", "uuid": name, "message": user}, chain)

    def is_new(self, session: str, message_id: str) -> bool:
        """Return whether a message is seen for the first time."""
        return bool(self._counted.new(session, (message_id,)))

    def answered(
        self,
        session: str,
        call: str,
        model: str | None,
        usage: CallUsage,
        chain: str | None = None,
    ) -> None:
        """Publish the answer to a call of the conversation."""
        if usage.is_reported:
            self._publish(
                session,
                {
                    "type": "message",
                    "role": "assistant",
                    "id": call,
                    "model": model,
                    "content": [],
                    "usage": usage.as_json(),
                },
                chain,
            )

    def compacting(self, session: str, call: str) -> None:
        """Publish that a compaction begins, with the call that writes its summary."""
        self._status(session, f"{call}-start", {"status": "compacting"})

    def compacted(
        self,
        session: str,
        call: str,
        usage: CallUsage,
        chain: str | None = None,
        *,
        trigger: str | None = "auto",
        ended_s: float | None = None,
    ) -> None:
        """Publish that the summary is written, and what that took; a subagent's has no cost.

        `ended_s` is when, in seconds since 1970, if not now.
        """
        if usage.is_reported and chain is None:
            answer: Body = {"id": call, "stop_reason": "end_turn", "usage": usage.as_json()}
            own: Body = {"agentId": f"acompact-{call}", "isSidechain": True, "message": answer}
            answered: Body = {"type": "assistant", "uuid": f"{call}-cost", **own}
            self._publish(session, answered, ended_s=ended_s)
        boundary: Body = {"subtype": "compact_boundary", "uuid": call}
        self._publish(
            session,
            {"type": "system", **boundary, "compact_metadata": {"trigger": trigger}},
            chain,
            ended_s=ended_s,
        )

    def failed(self, session: str, call: str, error: BaseException) -> None:
        """Publish that no summary could be written; of the error its class, and nothing it says."""
        result: Body = {
            "status": None,
            "compact_result": "failed",
            "compact_error": type(error).__name__,
        }
        self._status(session, f"{call}-end", result)

    def _status(self, session: str, name: str, fields: Mapping[str, Json]) -> None:
        self._publish(session, {"type": "system", "subtype": "status", "uuid": name, **fields})

    def _publish(
        self,
        session: str,
        message: Body,
        chain: str | None = None,
        *,
        ended_s: float | None = None,
    ) -> None:
        moment_s = self._clock.now_ms() / 1_000 if ended_s is None else ended_s
        moment = datetime.fromtimestamp(moment_s, UTC).isoformat(timespec="milliseconds")
        of: Body = {} if chain is None else {"agent_id": chain, "parent_tool_use_id": chain}
        whole = {**message, **of, "session_id": session, "timestamp": moment}
        self._publisher.publish(whole, session_id=session)
