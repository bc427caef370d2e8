"""What is known of a conversation that is being read, and how it is stored without its archive."""

import base64
from dataclasses import replace
from typing import Final, Self

from contextgauge.compaction.counting import CumulativeTokens
from contextgauge.compaction.formats.fields import (
    a_count,
    a_text,
    an_array,
    an_object,
    optional_text,
)
from contextgauge.compaction.history import Edit, History
from contextgauge.compaction.messages import Message
from contextgauge.compaction.reading.branches import Branches
from contextgauge.compaction.reading.compaction_effect import CompactionEffect
from contextgauge.compaction.reading.context_changes import MessagesAdded, ServiceEdit, Step
from contextgauge.compaction.reading.lines import DIGEST_BYTES
from contextgauge.compaction.reading.queued_prompts import QueuedPrompts
from contextgauge.compaction.store.stored_messages import read_message, write_message
from contextgauge.records import Json

_MOST_EFFECTS: Final = 20
"""Compactions whose effect is remembered: as many as commands are in a view."""

_FLAGS: Final = (
    "is_incomplete",
    "_was_incomplete",
    "_awaits_summary",
    "_skips_summary",
    "_awaits_turn",
    "_lacks_preserved",
)


class ReadingState:
    """What is known of a conversation by the lines so far. Not thread-safe."""

    def __init__(self) -> None:
        self.history = History()
        self.model: str | None = None
        self.folder: str | None = None
        self.compactions = 0
        self.begun = 0
        """How often something was archived: by compactions and resets."""
        self.archived_before = 0
        """Archived messages that are no longer in the history."""
        self.is_incomplete = False
        """Something that the model sees is not in the history."""
        self.without_text: set[str] = set()
        """Ids of messages that came without their texts."""
        self.seen: set[bytes] = set()
        self.effects: dict[str, CompactionEffect] = {}
        """Of compactions by the service, by their boundaries' ids; the latest last."""
        self._branches = Branches()
        self._steps: list[tuple[str | None, Step]] = []
        self._items: list[Json] = []
        """The items of the last message, where the next may continue it."""
        self._queued = QueuedPrompts()
        self._answer: str | None = None
        self._answer_message = ""
        self._before_answer = self.history.tokens
        self._awaits_summary = self._skips_summary = self._was_incomplete = False
        self._awaits_turn = True
        self._lacks_preserved = False

    def copy(self) -> Self:
        """Return a copy that can be added to."""
        copy = type(self)()
        copy.__dict__ |= {
            **self.__dict__,
            "history": self.history.fork(),
            "without_text": set(self.without_text),
            "seen": set(self.seen),
            "effects": dict(self.effects),
            "_branches": self._branches.copy(),
            "_steps": list(self._steps),
            "_items": list(self._items),
            "_queued": QueuedPrompts.from_json(self._queued.to_json()),
        }
        return copy

    @classmethod
    def of_history(cls, history: History, model: str | None = None) -> Self:
        """Return the conversation that has this history; lines that were its are not known."""
        conversation = cls()
        conversation.history, conversation.model = history, model
        conversation.compactions = history.rounds
        known = Edit(0, tuple(history.active), None)
        conversation._steps = [(None, ServiceEdit(known, ()))]
        return conversation

    def base(self) -> dict[str, Json]:
        """Return what reading on needs, without what is archived, as JSON."""
        active = self.history.active
        ids = {each.id for each in active}
        links = self._branches.links(ids)
        return {
            "messages": [write_message(each) for each in active],
            "without_text": list[Json](sorted(self.without_text & ids)),
            "archived": self.archived_before + len(self.history.everything) - len(active),
            "compactions": self.compactions,
            "model": self.model,
            "folder": self.folder,
            "tokens": self.history.tokens.to_json(),
            "flags": [getattr(self, each) for each in _FLAGS],
            "links": links,
            "queued": self._queued.to_json(),
            "effects": {key: each.to_json() for key, each in self.effects.items()},
            "seen": base64.b64encode(b"".join(sorted(self.seen))).decode("ascii"),
        }

    @classmethod
    def of_base(cls, value: Json) -> Self:
        """Return what can be read on. Raises ConfigError where it is damaged."""
        fields, reading = an_object(value, "base"), cls()
        messages = [
            read_message(each, f"base.messages[{index}]", {})
            for index, each in enumerate(an_array(fields.get("messages"), "base.messages"))
        ]
        reading.history.replace_active(messages)
        reading.history.tokens = CumulativeTokens.from_json(fields.get("tokens"))
        reading._steps = [(each.id, MessagesAdded((each.id,))) for each in messages]
        reading.without_text = set(map(str, an_array(fields.get("without_text"), "base")))
        reading.archived_before = a_count(fields, "archived", "base")
        reading.compactions = a_count(fields, "compactions", "base")
        reading.model = optional_text(fields, "model", "base")
        reading.folder = optional_text(fields, "folder", "base")
        for name_, flag_ in zip(_FLAGS, an_array(fields.get("flags"), "base"), strict=True):
            setattr(reading, name_, flag_ is True)
        reading._branches = Branches.of_links(an_object(fields.get("links"), "base.links"))
        reading._queued = QueuedPrompts.from_json(fields.get("queued"))
        for key, effect in an_object(fields.get("effects", {}), "base.effects").items():
            reading.effects[key] = CompactionEffect.from_json(effect, f"base.effects.{key}")
        seen = base64.b64decode(a_text(fields, "seen", "base"))
        starts = range(0, len(seen), DIGEST_BYTES)
        reading.seen = {seen[at : at + DIGEST_BYTES] for at in starts}
        return reading

    @property
    def is_without_text(self) -> bool:
        """Whether a message that the model sees came without its texts."""
        return bool(self.without_text) and not self.without_text.isdisjoint(
            each.id for each in self.history.active
        )

    def miss(self) -> None:
        """Note that something that the model sees is not there, until a compaction or reset."""
        self.is_incomplete = self._was_incomplete = True

    def _await_effect(self, edit: Edit, boundary: str | None) -> None:
        """Note that the service compacts now."""
        self._give_up_effect()
        active = self.history.active
        is_calling = bool(active) and active[-1].role != "assistant"
        if boundary is not None:
            self.effects[boundary] = CompactionEffect.of(
                edit.receipt, self.model, is_calling=is_calling
            )
        while len(self.effects) > _MOST_EFFECTS:
            del self.effects[next(iter(self.effects))]

    def _judge(self, message: Message) -> None:
        """Look whether the service's last compaction took effect, and undo it if it did not."""
        boundary, effect = next(reversed(self.effects.items()), ("", None))
        if effect is None or effect.state != "awaited":
            return
        if message.role == "assistant" and message.usage is not None:
            effect = effect.judged(message.usage.context, self.model)
        self.effects[boundary] = effect.came(message)
        if effect.state == "none":
            self._undo(boundary)

    def _undo(self, boundary: str) -> None:
        """Have what a compaction archived active again, where that is still known."""
        steps = [step for step in self._steps if step[0] != boundary]
        if len(steps) == len(self._steps):
            self.miss()
            return
        self._steps = steps
        self.begun += 1
        self.history.replace_active(self._active_by_steps())

    def _give_up_effect(self) -> None:
        """No longer await the effect of a compaction: something else changed the conversation."""
        for boundary, effect in self.effects.items():
            if effect.state == "awaited":
                self.effects[boundary] = replace(effect, state="unknown")

    def _active_by_steps(self) -> list[Message]:
        out, active = self._branches.out, list[Message]()
        for uuid, step in self._steps:
            if uuid is None or uuid not in out:
                active = step.on(active, self.history.original)
        return active
