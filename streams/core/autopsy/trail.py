"""The calls and turns of a conversation in order, by the places of their entries in its history."""

from bisect import bisect_left
from collections.abc import Container
from typing import NamedTuple

from contextgauge.compaction.carried.failure_lines import failure_in
from contextgauge.compaction.carried.file_ledger import commands_of, uses_of
from contextgauge.compaction.carried.text_actions import calls_of
from contextgauge.compaction.history import Edit, History
from contextgauge.compaction.messages import Message, ToolCall
from streams.core.control.turn_overlap import Turn, can_be_judged


class TrailCall(NamedTuple):
    """A call, the files that it reads and changes, and the shell commands that it runs."""

    place: int
    message_id: str
    name: str
    arguments: str = ""
    read: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def acts(self) -> bool:
        """Whether it changes a file, or runs a command that is not known only to read files."""
        return bool(self.changed or (self.commands and not self.read))


class TrailTurn(NamedTuple):
    """A turn of the user's that is long enough to be judged."""

    place: int
    message_id: str
    turn: Turn


class Trail:
    """What an agent and its user did. `failures` are messages with results of calls, by call.

    `emptied` are the places of edits that left nothing: resets, and compactions before a summary.
    Of the messages `without_text` nothing is known but that there were calls.
    """

    def __init__(self, history: History, without_text: Container[str] = ()) -> None:
        self.calls: list[TrailCall] = []
        self.failures: dict[int, str] = {}
        self.turns: list[TrailTurn] = []
        self.emptied: list[int] = []
        self.end = len(history.entries)
        self._without_text = without_text
        self._open: dict[str, int] = {}
        active: list[Message] = []
        for place, entry in enumerate(history.entries):
            if isinstance(entry, Edit):
                active = entry.on(active)
                if not active:
                    self.emptied.append(place)
            elif entry.compaction is not None:
                active = [*(each for each in active if each.role == "system"), entry]
            else:
                active.append(entry)
                self._add(place, entry)
        self._places = [each.place for each in self.calls]

    def calls_before(self, place: int) -> int:
        """Return how many calls come before an entry."""
        return bisect_left(self._places, place)

    def turns_before(self, place: int) -> list[TrailTurn]:
        """Return the turns before an entry."""
        return self.turns[: bisect_left(self.turns, place, key=lambda each: each.place)]

    def _add(self, place: int, message: Message) -> None:
        has_text = message.id not in self._without_text
        if has_text and can_be_judged(message.user_text):
            self.turns.append(TrailTurn(place, message.id, Turn(message.user_text)))
        outputs = [(each.call_id, each.text, each.is_error) for each in message.results]
        for call_id, text, is_error in (*outputs, ("", message.data_text, False)):
            call = self._open.pop(call_id, None)
            if call is not None and (is_error or failure_in(text, is_error=False)):
                self.failures[call] = message.id
        for each in calls_of(message):
            if has_text:
                self._open[each.id] = len(self.calls)
                self.calls.append(_call(place, message.id, each))
            else:
                self.calls.append(TrailCall(place, message.id, each.name))


def _call(place: int, message_id: str, call: ToolCall) -> TrailCall:
    uses = list(uses_of(call))
    return TrailCall(
        place,
        message_id,
        call.name,
        call.arguments,
        tuple(path for path, changed in uses if not changed),
        tuple(path for path, changed in uses if changed),
        tuple(commands_of(call)),
    )
