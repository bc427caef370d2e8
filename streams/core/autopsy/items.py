"""What stood before a boundary: turns, replies, files and failures, by order and structure alone.

Turns are the rule guard's (`streams/core/control/pins.py`), failures those of the digest, and files
those of the ledger. A decision is the reply that ends the agent's work on a turn: what it writes
before further calls is a step. The latest turn is the open request.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.compaction.carried.digest import ERROR_CHARACTERS, entries_of, latest
from contextgauge.compaction.carried.failure_lines import reasons_in
from contextgauge.compaction.carried.file_ledger import MAX_FILES, uses_of
from contextgauge.compaction.carried.text_actions import calls_of
from contextgauge.compaction.messages import Message

ItemKind: TypeAlias = Literal["turn", "request", "decision", "file", "error"]
KINDS: Final[tuple[ItemKind, ...]] = ("turn", "request", "decision", "file", "error")


class Item(NamedTuple):
    """Something that stood before a boundary, and the messages that it is in.

    `text` is a turn, a reply or what a failure says, whole or its beginning and end; or a path.
    """

    kind: ItemKind
    text: str
    message_ids: tuple[str, ...]


def decisions(messages: Sequence[Message]) -> Iterator[Item]:
    """Yield the agent's replies."""
    is_end = True
    replies: list[Item] = []
    for placed in reversed(list(_by_message(messages))):
        message, texts = placed
        if message.is_user_turn:
            is_end = True
        elif message.role == "assistant":
            is_end = is_end and not any(True for _ in calls_of(message))
            if is_end:
                replies += [Item("decision", text, (message.id,)) for text in texts]
    yield from reversed(replies)


def errors(messages: Sequence[Message]) -> Iterator[Item]:
    """Yield what failures say, each once: the last time.

    Of one that only says with which status it ended, what was printed before it.
    """
    by_id = {each.id: each for each in messages}
    entries = [each.entry for each in entries_of(messages)]
    for place in latest(entries):
        entry = entries[place]
        if entry.speaker != "tool":
            continue
        text = f"{entry.text}\n{entry.end}".strip()
        if not reasons_in(text):
            printed = [each.text for each in by_id[entry.message_id].results if text in each.text]
            text = "".join(printed)[-ERROR_CHARACTERS:].strip() or text
        yield Item("error", text, (entry.message_id,))


def files(messages: Sequence[Message]) -> Iterator[Item]:
    """Yield the files of the calls, and those that an earlier compaction carried."""
    ids: dict[str, tuple[str, ...]] = {}
    for message in messages:
        marker = message.compaction
        carried = () if marker is None else marker.carried.files
        paths = [each.path for each in carried]
        paths += [path for call in calls_of(message) for path, _ in uses_of(call)]
        for path in dict.fromkeys(paths):
            ids[path] = (*ids.pop(path, ()), message.id)
    for path in list(ids)[-MAX_FILES:]:
        yield Item("file", path, ids[path])


def _by_message(messages: Sequence[Message]) -> Iterator[tuple[Message, list[str]]]:
    """Yield the messages with what the digest takes of the agent's texts."""
    texts: dict[int, list[str]] = {}
    for position, entry in entries_of(messages):
        if entry.speaker == "agent":
            text = f"{entry.text}\n{entry.end}".strip()
            texts.setdefault(position, []).append(text)
    for position, message in enumerate(messages):
        if message.role != "system" and message.compaction is None:
            yield message, texts.get(position, [])
