"""What a hook publishes of requests that repeat the whole conversation: each message once."""

import pytest

from contextgauge.hooks import calls as module
from contextgauge.hooks.calls import SessionCalls

LONG = [f"m{number}" for number in range(20_000)]


class Published:
    """A publisher that notes the messages of each session."""

    def __init__(self) -> None:
        self.ids: list[tuple[str | None, str]] = []

    def publish(self, message: object, *, session_id: str | None = None) -> None:
        assert isinstance(message, dict)
        self.ids.append((session_id, message["uuid"]))

    def new(self) -> list[str]:
        """Return what came since the last call."""
        ids, self.ids = self.ids, []
        return [name for _, name in ids]


def test_of_a_conversation_of_any_length_each_message_is_published_once() -> None:
    published = Published()
    calls = SessionCalls(published)
    calls.asked("s", LONG)
    assert published.new() == LONG
    # Shortened, without the last ones, in another order, with new ones at any place; then whole.
    for request in (["a", *LONG[-3:]], LONG[:9_000], [*LONG[::-1], "b"], [None, "a", *LONG, "c"]):
        calls.asked("s", request, "subagent")
    assert published.new() == ["a", "b", "c"]


def test_of_two_conversations_with_the_same_ids_both_are_published() -> None:
    published = Published()
    calls = SessionCalls(published)
    calls.asked("one", ["a", "b"])
    calls.asked("two", ["b", "a", "b"])
    assert published.ids == [("one", "a"), ("one", "b"), ("two", "b"), ("two", "a")]


def test_the_conversations_that_were_used_last_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_SESSIONS", 2)
    published = Published()
    calls = SessionCalls(published)
    for session in ("one", "two", "one", "three", "one"):
        calls.asked(session, LONG[:3])
    assert [session for session, _ in published.ids[::3]] == ["one", "two", "three"]
    calls.asked("two", LONG[:1])
    assert len(published.ids) == 10
