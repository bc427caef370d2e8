"""Reading a conversation line by line, as a runtime publishes it, into a history.

Lines come in the forms to which a runtime's adapter reduces its own (`lines.py`). No message is
deleted: a compaction, a reset and turns that were taken back archive messages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from contextgauge.compaction.engine.plan import PlanRejectedError
from contextgauge.compaction.formats import read_answer, read_messages
from contextgauge.compaction.formats.fields import (
    a_count,
    a_text,
    an_object,
)
from contextgauge.compaction.history import Edit
from contextgauge.compaction.messages import (
    ApiUsage,
    ContextCompaction,
    FormatName,
    JsonSource,
    Message,
    Opaque,
    open_calls,
)
from contextgauge.compaction.reading.branches import preserved_segment
from contextgauge.compaction.reading.context_changes import (
    ActiveCleared,
    MessagesAdded,
    ServiceEdit,
    Step,
)
from contextgauge.compaction.reading.lines import (
    Line,
    digest_of,
    folder_of,
    is_boundary,
    is_reset,
    model_of,
    own_edit,
    reduced,
    report_of,
    text_of,
)
from contextgauge.compaction.reading.reading_state import ReadingState
from contextgauge.compaction.store.stored_history import load_edit
from contextgauge.errors import ConfigError
from contextgauge.normalise.adapter import NO_TEXT
from contextgauge.normalise.fields import flag, mapping, name
from contextgauge.normalise.responses import BareAnswer, answer_of, inner_boundary
from contextgauge.normalise.signals import Response
from contextgauge.records import Json

_AFTER: Final = 64
"""Messages in which a result's call is looked for: it comes right after it."""

QUEUED: Final = ".queued"
"""In the id of a prompt that has no line, after the key of the line that it is before."""

_ITEMS: Final[FormatName] = "openai-responses"


class ConversationReading(ReadingState):
    """One conversation, by the lines so far. Not thread-safe."""

    def add(self, line: Line, key: str, *, strict: bool = False) -> bool:
        """Add a line, and return whether it contained anything new.

        `key` names messages without an id. With `strict`, raises PlanRejectedError for a compaction
        of the service that does not fit; else that is without effect. A line that cannot be read
        makes the conversation incomplete, and raises ConfigError.
        """
        own_line = reduced(line)
        if own_line is None:
            return False
        digest = digest_of(own_line)
        if digest in self.seen:
            return False
        if strict and (own := own_edit(own_line)) is not None:
            self._edit_of(own, self._key(own_line, key))  # raises before anything is changed
        self.seen.add(digest)
        self._take(own_line, self._key(own_line, key))
        return True

    def _key(self, line: Line, key: str) -> str:
        uuid = name(line, "uuid")
        return key if uuid is None or self.history.original(uuid) is not None else uuid

    def _take(self, line: Line, key: str) -> None:
        uuid = name(line, "uuid")
        if not self._branches.follows(line):
            self.miss()  # it may have taken back what is not known here
        rewound = self._branches.add(line)
        self.model = model_of(line) or self.model
        self.folder = folder_of(line) or self.folder
        self._queued.note(line)
        try:
            self._read(line, uuid, key)
        except ConfigError:
            self._items.clear()
            self.miss()
            raise
        finally:
            if rewound:
                self._replay()

    def _read(self, line: Line, uuid: str | None, key: str) -> None:
        payload, message = mapping(line, "payload"), mapping(line, "message")
        match line.get("type"):
            case "response_item" if payload is not None:
                self._add_item(line, payload, key)
            case "compacted" if payload is not None:
                self._replace(line, payload, key)
            case "result":
                self._awaits_turn = True
            case "event_msg" if (payload or {}).get("type") == "token_count":
                self._report(report_of(line))
            case "event_msg":
                self.miss()  # Codex took turns back, and does not say which
            case "system" if is_boundary(line):
                self._compact(line, uuid, key)
            case "user" | "assistant" if message is not None:
                self._add_message(line, message, uuid, key)
            case _ if (answer := answer_of(line)) is not None:
                self._add_answer(line, answer, key)
            case _ if is_reset(line):
                self._reset(uuid)

    def _add_message(
        self, line: Line, message: dict[str, Json], uuid: str | None, key: str
    ) -> None:
        is_summary = line.get("isCompactSummary") is True
        if self._skips_summary and is_summary:
            self._skips_summary = False
            return
        if self._awaits_summary and line.get("isSynthetic") is True:
            is_summary = True
        if is_summary and not self._awaits_summary and self.history.active:
            self._clear(uuid)  # a summary without a boundary
        if flag(line, "isReplay") and uuid is None and self._repeats(message):
            return
        self._take_queued(line, message, uuid, key)
        is_harness = flag(line, "isMeta") or flag(line, "isSynthetic")
        messages = read_messages([message], "anthropic", is_user_turn=False if is_harness else None)
        (read,) = self._named(messages, key, line)
        if is_summary:
            self._summarise(read, text_of(message), uuid)
        elif (rest := self._begin_inside(read, message, uuid)) is not None:
            self._append(self._once(rest, message), uuid)
        if is_reset(line):
            self._reset(uuid)
        elif isinstance(superseded := line.get("supersedes"), list):
            self._do(uuid, ActiveCleared(self._ids_without(superseded)))

    def _take_queued(
        self, line: Line, message: dict[str, Json], uuid: str | None, key: str
    ) -> None:
        """Add what a person wrote meanwhile, once the results are there with which it was sent."""
        if line.get("type") == "user":
            self._queued.came(text_of(message))
        elif self._queued.has_absorbed and not open_calls(self.history.active):
            turns: list[Json] = [
                {"role": "user", "content": each} for each in self._queued.absorbed()
            ]
            for each in self._named(read_messages(turns, "anthropic"), f"{key}{QUEUED}", {}):
                self._append(each, uuid)

    def _ids_without(self, superseded: Sequence[Json]) -> tuple[str, ...]:
        return tuple(each.id for each in self.history.active if each.id not in superseded)

    def _repeats(self, message: Mapping[str, Json]) -> bool:
        """Whether a replay of a user's message is of the last that the user wrote."""
        turns = (each for each in reversed(self.history.active) if each.is_user_turn)
        last = next(turns, None)
        return last is not None and last.text == text_of(dict(message))

    def _named(self, messages: Sequence[Message], key: str, line: Line) -> list[Message]:
        """Give messages ids of their own, and note those without text."""
        only = len(messages) == 1
        named = [
            replace(each, id=key if only else f"{key}.{index}")
            for index, each in enumerate(messages)
        ]
        if line.get(NO_TEXT) is True:
            self.without_text.update(each.id for each in named)
        return named

    def _once(self, message: Message, value: dict[str, Json]) -> Message:
        """Leave what an API reported with the last message of an answer: each line repeats it."""
        answer = name(value, "id")
        if message.usage is None or answer is None:
            return message
        if answer == self._answer:
            before = self.history.original(self._answer_message)
            if before is not None:
                self.history.amend(replace(before, usage=None))
            self.history.tokens = self._before_answer
        self._answer, self._answer_message = answer, message.id
        self._before_answer = self.history.tokens
        return message

    def _append(self, message: Message, uuid: str | None) -> None:
        self._items.clear()
        if message.role == "assistant" and self._awaits_turn:
            self.miss()  # what the user wrote is not published
        self._awaits_turn &= message.role != "user"
        self._judge(message)
        self.history.append(message)
        self._steps.append((uuid, MessagesAdded((message.id,))))

    def _add_item(self, line: Line, item: dict[str, Json], key: str) -> None:
        """Add an item of Codex: one of an answer continues the message of those before it."""
        items = [*self._items, item]
        after = self.history.active[-_AFTER:]
        messages = read_messages(items, _ITEMS, after=after)
        if self._items and len(messages) == 1:
            last = self.history.active[-1]
            (message,) = self._named(messages, last.id, line)
            self.history.amend(replace(message, usage=last.usage))
        else:
            items = [item]
            (message,) = self._named(messages[-1:], key, line)
            self._append(message, None)
        self._items = items

    def _report(self, report: Response | None) -> None:
        """Add what Codex reports of an answer to it; the same sum again is the same answer (R9)."""
        if report is None or report.usage is None or report.usage.used == 0:
            return
        if report.key is not None and report.key == self._answer:
            return
        self._answer = report.key
        self._items.clear()  # what comes after it is of the next answer
        for message in reversed(self.history.active):
            if message.role == "assistant":
                usage = ApiUsage(report.usage.used, report.output or 0)
                self.history.amend(replace(message, usage=usage))
            if message.role != "tool":
                return

    def _add_answer(self, line: Line, answer: BareAnswer, key: str) -> None:
        """Add an answer of an API, where it has a place: after what it answers."""
        active = self.history.active
        if not active or active[-1].role == "assistant":
            self.miss()  # what was asked is not published
            return
        messages = read_answer(answer.body, answer.format, after=active[-_AFTER:])
        for message in self._named(messages, key, line):
            if (rest := self._begin_inside(message, answer.body, None)) is not None:
                self._append(rest, None)

    def _begin_inside(
        self, message: Message, body: dict[str, Json], uuid: str | None
    ) -> Message | None:
        """Begin again where the API compacted inside an answer, and return the rest of this.

        The API drops what is before such a block. Its text becomes the user's turn that the engine
        writes a summary as; where it is encrypted, the block itself is all that can be kept.
        """
        places = [
            place
            for place, block in enumerate(message.blocks)
            if isinstance(block, Opaque) and block.kind == "compaction"
        ]
        inner = inner_boundary(body) if places and message.role == "assistant" else None
        if inner is None:
            return message
        self._clear(uuid)
        if inner.summary is None or message.source is None:
            return message
        source = JsonSource(message.source.format, {"role": "user", "content": inner.summary})
        summary = replace(message, role="user", usage=None, source=source)
        self._append(self._marked(summary, inner.summary), uuid)
        rest = replace(message, id=f"{message.id}.1", blocks=message.blocks[places[-1] + 1 :])
        if message.id in self.without_text:
            self.without_text.add(rest.id)
        return rest if rest.blocks else None

    def _compact(self, line: Line, uuid: str | None, key: str) -> None:
        own = own_edit(line)
        if own is not None:
            self._skips_summary = True
            try:
                edit = self._edit_of(own, key)
            except PlanRejectedError:
                return
            self._apply(edit, uuid)
            return
        preserved = self._preserved(line)
        self._clear(uuid, preserved or ())
        self._awaits_summary, self._skips_summary = True, False
        self._lacks_preserved = preserved is None
        self.is_incomplete = True  # until its summary is here
        if (summary := mapping(line, "message")) is not None:  # it came along
            self._add_message({**line, "isCompactSummary": True}, summary, uuid, key)

    def _preserved(self, boundary: Line) -> tuple[str, ...] | None:
        """Return the ids of what a compaction preserved; None where that is not known here."""
        segment = preserved_segment(boundary)
        if segment is None:
            return ()
        ids = [each.id for each in self.history.active]
        if segment.head not in ids or segment.tail not in ids:
            return None
        return tuple(ids[ids.index(segment.head) : ids.index(segment.tail) + 1])

    def _clear(self, uuid: str | None, preserved: tuple[str, ...] = ()) -> None:
        """Begin again after a compaction: what came before it is archived."""
        self.compactions += 1
        self.is_incomplete = self._awaits_summary = self._lacks_preserved = False
        self._do(uuid, ActiveCleared(preserved))

    def _reset(self, uuid: str | None) -> None:
        self.is_incomplete = False
        self._awaits_summary = self._skips_summary = False
        self._do(uuid, ActiveCleared())

    def _do(self, uuid: str | None, step: Step) -> None:
        self.begun += 1
        self._give_up_effect()
        self._items.clear()
        self._steps.append((uuid, step))
        active = step.on(self.history.active, self.history.original)
        self.history.replace_active(active)

    def _summarise(self, message: Message, text: str, uuid: str | None) -> None:
        """Put a runtime's summary before what it preserved: it is not the user's words."""
        self._awaits_summary = self._awaits_turn = False
        self.is_incomplete = self._lacks_preserved
        self._was_incomplete |= self._lacks_preserved
        self.history.replace_active([self._marked(message, text), *self.history.active])
        self._steps.append((uuid, MessagesAdded((message.id,), first=True)))

    def _marked(self, message: Message, text: str) -> Message:
        marker = ContextCompaction(self.compactions, None, text, None, None, prose=text)
        return replace(message, blocks=(marker,))

    def _replace(self, line: Line, payload: Mapping[str, Json], key: str) -> None:
        """Follow Codex, which says what its conversation is after a compaction."""
        replacement, text = payload.get("replacement_history"), payload.get("message")
        self._clear(None)
        items: list[Json] = []
        if isinstance(replacement, list):
            items = replacement
        elif isinstance(text, str) and text:
            items = [{"role": "user", "content": text}]
        else:
            self.miss()
        messages = self._named(read_messages(items, _ITEMS), key, line)
        if isinstance(text, str) and text:
            messages = [
                self._marked(each, text) if _says(each.source, text) else each for each in messages
            ]
        self.history.replace_active(messages)
        self._steps.append((None, MessagesAdded(tuple(each.id for each in messages))))

    def _edit_of(self, own: Mapping[str, Json], key: str) -> Edit:
        """Return the service's edit. Raises PlanRejectedError where it does not fit."""
        try:
            plan = an_object(own.get("plan"), "plan")
            covers = a_count(plan, "covers", "plan")
            last_id, prefix_hash = a_text(plan, "last_id", "plan"), a_text(plan, "prefix_hash", "")
            self.history.check(covers, last_id, prefix_hash)
            edit = load_edit(own.get("edit"), self.history)
        except ConfigError as error:
            raise PlanRejectedError(f"the compaction cannot be read: {error}") from error
        if edit.start + edit.covers > covers:
            raise PlanRejectedError("the compaction changes more than its plan covers")
        named = tuple(
            each if each.id else replace(each, id=f"{key}.{index}")
            for index, each in enumerate(edit.replacement)
        )
        return replace(edit, replacement=named)

    def _apply(self, edit: Edit, uuid: str | None) -> None:
        end = edit.start + edit.covers
        covered = tuple(each.id for each in self.history.active[edit.start : end])
        self._items.clear()
        self.begun += 1
        self._await_effect(edit, uuid)
        self.history.add(edit)
        self._steps.append((uuid, ServiceEdit(edit, covered)))
        self.compactions = max(self.compactions, self.history.rounds)

    def _replay(self) -> None:
        """Make the active conversation of the steps whose lines were not taken back."""
        self._items.clear()
        self._give_up_effect()
        self.history.replace_active(self._active_by_steps())
        self.is_incomplete |= self._was_incomplete


def _says(source: JsonSource | None, text: str) -> bool:
    """Whether a message of one item has just this text."""
    value = None if source is None else source.value
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    return text_of(value) == text
