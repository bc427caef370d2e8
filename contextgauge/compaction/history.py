"""The history of a conversation: all of its messages, and those that the model sees.

An append-only log of messages and edits. An edit replaces a part of the active conversation; the
messages that it replaces are archived, never deleted. A history can be stored, loaded, forked at
any message, and always gives the same active conversation again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from contextgauge.compaction.counting import CumulativeTokens
from contextgauge.compaction.engine.compaction_receipt import Receipt
from contextgauge.compaction.engine.plan import Plan, PlanRejectedError, digest
from contextgauge.compaction.engine.trigger import TriggerState
from contextgauge.compaction.messages import Message, in_context
from contextgauge.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Edit:
    """The `covers` active messages from position `start` on became `replacement`.

    A history's log has no more in it than what changed. `receipt` is None where the engine did not
    do it: a runtime's own compaction, a reset, turns that were taken back.
    """

    covers: int
    replacement: tuple[Message, ...]
    receipt: Receipt | None
    start: int = 0

    def on(self, active: Sequence[Message]) -> list[Message]:
        """Return the active conversation after the edit."""
        return [
            *active[: self.start],
            *self.replacement,
            *active[self.start + self.covers :],
        ]

    def without_same(self, active: Sequence[Message]) -> "Edit":
        """Return the edit without messages at its beginning and end that stay as they are."""
        covered = active[self.start : self.start + self.covers]
        most = min(len(covered), len(self.replacement))
        pairs = zip(covered, self.replacement, strict=False)
        first = next((index for index, (old, new) in enumerate(pairs) if old is not new), most)
        pairs = zip(reversed(covered[first:]), reversed(self.replacement[first:]), strict=False)
        last = next(
            (index for index, (old, new) in enumerate(pairs) if old is not new), most - first
        )
        return Edit(
            len(covered) - first - last,
            self.replacement[first : len(self.replacement) - last],
            self.receipt,
            self.start + first,
        )


Entry: TypeAlias = Message | Edit

_T = TypeVar("_T", Message, Entry)


class History:
    """One conversation. Not thread-safe: it belongs to one agent loop."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._entries: list[Entry] = []
        self._everything: list[Message] = []
        self._by_id: dict[str, Message] = {}
        self._active: list[Message] = []
        self._fresh_from = self._edited_until = self._saved_since_report = 0
        self._next_number = self._turns = self._rounds = 0
        self._calling = self._edited_during_call = False
        self._has_calls = False
        self.trigger = TriggerState()
        self.tokens = CumulativeTokens()
        self.extend(messages)

    @property
    def entries(self) -> Sequence[Entry]:
        """The log: messages as they were added, and edits."""
        return self._entries

    @property
    def everything(self) -> Sequence[Message]:
        """All messages in the order in which they came, with the compactions' own: for people."""
        return self._everything

    @property
    def active(self) -> Sequence[Message]:
        """What the model sees."""
        return self._active

    @property
    def archived(self) -> list[Message]:
        """Messages that the model no longer sees as they were, in order: for recall.

        A message whose content was cleared or shortened counts too.
        """
        shown = {message.id: message for message in self._active}
        return [
            message
            for message in self._everything
            if message.compaction is None and shown.get(message.id) != message
        ]

    @property
    def fresh_from(self) -> int:
        """Position in `active` from which on reported sizes are of the conversation as it is."""
        return self._fresh_from

    @property
    def edited_until(self) -> int:
        """Position in `active` of the first message after the last edit."""
        return self._edited_until

    @property
    def saved_since_report(self) -> int:
        """Estimated tokens by which edits made the conversation smaller since the last report."""
        return self._saved_since_report

    @property
    def rounds(self) -> int:
        """Number of summaries so far."""
        return self._rounds

    @property
    def receipts(self) -> list[Receipt]:
        """The receipts of all compactions by the engine, oldest first."""
        edits = (each for each in self._entries if isinstance(each, Edit))
        return [each.receipt for each in edits if each.receipt is not None]

    @property
    def turns(self) -> int:
        """Number of the user's turns so far."""
        return self._turns

    def original(self, message_id: str) -> Message | None:
        """Return a message as it was added."""
        return self._by_id.get(message_id)

    def append(self, message: Message) -> Message:
        """Add a message, and return it with its id. Raises ConfigError for an id used twice.

        A compaction's marker among them, as in a conversation that was stored with it, archives
        what came before it but for system messages (001).

        An answer to a call that began before an edit reports the size of what is no longer sent:
        its usage counts in the sums, and is not a size of the conversation.
        """
        if message.usage is not None:
            self.tokens = self.tokens.add(message.usage)
            if self._edited_during_call:
                message = replace(message, usage=None)
            self._calling = self._edited_during_call = False
        if not message.id:
            message = replace(message, id=self._new_id("cg-m"))
        elif message.id in self._by_id:
            raise ConfigError(f"the history has a message with the id {message.id!r} already")
        before = self._active[-1] if self._active else None
        message = in_context(message, before, has_calls=self._has_calls)
        self._has_calls = self._has_calls or bool(message.calls)
        self._remember(message)
        self._entries.append(message)
        if message.compaction is not None:
            self._active = [each for each in self._active if each.role == "system"]
            self._fresh_from = len(self._active)
        self._active.append(message)
        if message.usage is not None:
            self._saved_since_report = 0
        return message

    def begin_call(self) -> None:
        """Note that the model is called now with what is active."""
        self._calling, self._edited_during_call = True, False

    def extend(self, messages: Iterable[Message]) -> None:
        """Add messages in order. Raises ConfigError."""
        for message in messages:
            self.append(message)

    def apply(self, plan: Plan) -> None:
        """Put a plan into effect. Raises PlanRejectedError where its beginning changed."""
        self.check(plan.covers, plan.last_id, plan.prefix_hash)
        self._edit(Edit(plan.covers, plan.replacement, plan.receipt))

    def check(self, covers: int, last_id: str, prefix_hash: str) -> None:
        """Raise PlanRejectedError where the beginning is not what a plan covers."""
        covered = self._active[:covers]
        if (
            len(covered) < covers
            or (covered and covered[-1].id != last_id)
            or digest(covered) != prefix_hash
        ):
            raise PlanRejectedError(
                "the conversation was changed since the plan was made: make a new plan"
            )

    def replace_active(self, messages: Sequence[Message]) -> None:
        """Make these the active conversation, as something other than the engine did."""
        self._edit(Edit(len(self._active), tuple(messages), None))

    def amend(self, message: Message) -> None:
        """Replace a message, as if it had been added so: more of an answer came, or its usage.

        Raises ConfigError for an id that is not in the history.
        """
        before = self.original(message.id)
        if before is None:
            raise ConfigError(f"the history has no message with the id {message.id!r}")
        if message.usage is not None and message.usage is not before.usage:
            self.tokens = self.tokens.add(message.usage)
            self._saved_since_report = 0
        self._by_id[message.id] = message
        _put(self._entries, before, message)
        _put(self._everything, before, message)
        _put(self._active, before, message)

    def fork(self, until: str | None = None) -> "History":
        """Return a copy up to and including a message; counts are inherited.

        With the id of a compaction's message it begins as the conversation went on after it. The
        state of the trigger is inherited where nothing is left out. Raises ConfigError for an id
        that is not in the history.
        """
        entries: list[Entry] = []
        for entry in self._entries:
            entries.append(entry)
            added = entry.replacement if isinstance(entry, Edit) else (entry,)
            if until is not None and any(each.id == until for each in added):
                break
        else:
            if until is not None:
                raise ConfigError(f"the history has no message with the id {until!r}")
        copy = History.replay(entries)
        if len(entries) == len(self._entries):
            copy.trigger, copy.tokens = self.trigger, self.tokens
        return copy

    def after_compaction(self, number: int) -> "History":
        """Return a copy as it was right after its compaction of that number, counted from 1.

        Raises ConfigError where the history has no such compaction.
        """
        for message in self._everything:
            if message.compaction is not None and message.compaction.number == number:
                return self.fork(message.id)
        raise ConfigError(f"the conversation has no compaction {number}")

    @classmethod
    def replay(cls, entries: Iterable[Entry]) -> "History":
        """Rebuild a history from its log. Raises ConfigError for a log that does not add up."""
        history = cls()
        for entry in entries:
            history.add(entry)
        return history

    def add(self, entry: Entry) -> None:
        """Add one entry of a log. Raises ConfigError where it does not fit what came before."""
        if isinstance(entry, Edit):
            self._edit(entry)
        else:
            self.append(entry)

    def _edit(self, edit: Edit) -> None:
        if edit.start + edit.covers > len(self._active):
            raise ConfigError(
                f"an edit covers {edit.start + edit.covers} messages of {len(self._active)}: "
                "the stored history is damaged"
            )
        replacement = tuple(self._with_new_id(each) for each in edit.replacement)
        edit = replace(edit, replacement=replacement).without_same(self._active)
        self._entries.append(edit)
        self._active = edit.on(self._active)
        self._edited_until = len(self._active)
        self._edited_during_call = self._calling
        if edit.receipt is None:
            # Taken back from the end on, what was reported of the rest holds.
            is_end = not edit.replacement and edit.start == len(self._active)
            self._fresh_from = min(self._fresh_from, edit.start) if is_end else len(self._active)
            self._saved_since_report = 0
        elif edit.receipt.number is None:
            # Every message is still there, so what was reported holds but for what was saved.
            for step in edit.receipt.steps:
                self._saved_since_report += step.tokens_before - step.tokens_after
        else:
            self._fresh_from, self._saved_since_report = len(self._active), 0

    def _with_new_id(self, message: Message) -> Message:
        """Return a message of a replacement; a compaction's own becomes part of everything."""
        if not message.id:
            message = replace(message, id=self._new_id("cg-c"))
        if message.id not in self._by_id:
            self._remember(message)
        return message

    def _remember(self, message: Message) -> None:
        self._everything.append(message)
        self._by_id[message.id] = message
        self._turns += message.is_user_turn
        if message.compaction is not None:
            self._rounds = max(self._rounds, message.compaction.number)

    def _new_id(self, prefix: str) -> str:
        while True:
            self._next_number += 1
            each = f"{prefix}{self._next_number}"
            if each not in self._by_id:
                return each


def _put(messages: list[_T], before: Message, after: _T) -> None:
    """Put a message in the place of another; the place is near the end."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index] is before:
            messages[index] = after
            return
