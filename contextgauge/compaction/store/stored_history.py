"""A history as JSON, and back: exactly, with ids, sources, edits and the trigger's state.

An edit is stored as what it changed, and refers to what it did not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

from contextgauge.compaction.counting import CumulativeTokens
from contextgauge.compaction.engine.compaction_receipt import Receipt
from contextgauge.compaction.engine.trigger import TriggerState
from contextgauge.compaction.formats.fields import Fields, a_count, an_array, an_object, wrong
from contextgauge.compaction.history import Edit, Entry, History
from contextgauge.compaction.messages import Message
from contextgauge.compaction.store.stored_messages import read_message, validated, write_message
from contextgauge.errors import ConfigError, VersionError
from contextgauge.json_codec import dumps, loads
from contextgauge.records import Json

VERSION: Final = 2


def store_history(history: History) -> bytes:
    """Return a history as JSON, bytes in UTF-8: to be kept as they are, for `load_history`."""
    document = {
        "version": VERSION,
        "entries": _write_entries(history),
        "trigger": asdict(history.trigger),
        "tokens": history.tokens.to_json(),
    }
    return dumps(document)


def load_history(value: bytes | str) -> History:
    """Rebuild a history. Raises ConfigError where it is damaged, VersionError of a later build."""
    try:
        document = an_object(loads(value), "history")
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the stored history is not JSON: {error}") from error
    if "version" not in document:
        raise ConfigError("no history that `store_history` wrote: it has no version")
    if (version := document["version"]) != VERSION:
        raise VersionError(f"a history of version {version!r}; this build reads {VERSION}")
    history = History()
    for index, each in enumerate(an_array(document.get("entries"), "entries")):
        entry = _read_entry(an_object(each, f"entries[{index}]"), f"entries[{index}]", history)
        history.add(entry)
    history.trigger = validated(TriggerState, document.get("trigger"), "trigger")
    history.tokens = CumulativeTokens.from_json(document.get("tokens"))
    return history


def _write_entries(history: History) -> list[Json]:
    written: list[Json] = []
    active: list[Message] = []
    known: dict[str, Message] = {}
    for entry in history.entries:
        if isinstance(entry, Message):
            written.append({"message": write_message(entry)})
            active.append(entry)
            known[entry.id] = entry
            continue
        end = entry.start + entry.covers
        written.append(_write_edit(entry, active[entry.start : end], known))
        active[entry.start : end] = entry.replacement
        for each in entry.replacement:
            known.setdefault(each.id, each)
    return written


def store_edit(edit: Edit, history: History) -> dict[str, Json]:
    """Return an edit as JSON, to be applied to a history as it is."""
    known = {each.id: each for each in history.everything}
    covered = history.active[edit.start : edit.start + edit.covers]
    return _write_edit(edit, covered, known)


def load_edit(value: Json, history: History, path: str = "edit") -> Edit:
    """Read what `store_edit` wrote, before it is applied to the history. Raises ConfigError."""
    return _read_edit(an_object(value, path), path, history)


def _write_edit(
    edit: Edit, covered: Sequence[Message], known: Mapping[str, Message]
) -> dict[str, Json]:
    receipt = None if edit.receipt is None else loads(dumps(asdict(edit.receipt)))
    return {
        "start": edit.start,
        "covers": edit.covers,
        "replacement": _write_replacement(edit, covered, known),
        "receipt": receipt,
    }


def _write_replacement(
    edit: Edit, covered: Sequence[Message], known: Mapping[str, Message]
) -> list[Json]:
    """Write messages that stay by the id of the first in a row, changed ones by what changed."""
    places = {each.id: index for index, each in enumerate(covered)}
    written: list[Json] = []
    row: Fields = {}
    following = -1
    for message in edit.replacement:
        place = places.get(message.id)
        before = None if place is None else covered[place]
        if place is not None and message is before:
            if place == following:
                row["count"] = int(str(row.get("count", 1))) + 1
            else:
                row = {"same": message.id}
                written.append(row)
            following = place + 1
            continue
        following = -1
        stored = before is None and known.get(message.id) is message
        written.append({"same": message.id} if stored else write_message(message, before))
    return written


def _read_entry(fields: Fields, path: str, history: History) -> Entry:
    if "message" in fields:
        return read_message(fields["message"], f"{path}.message", {})
    return _read_edit(fields, path, history)


def _read_edit(fields: Fields, path: str, history: History) -> Edit:
    start = a_count(fields, "start", path) if "start" in fields else 0
    covers = a_count(fields, "covers", path)
    covered = history.active[start : start + covers]
    before = {each.id: each for each in covered}
    places = {each.id: index for index, each in enumerate(covered)}
    replacement: list[Message] = []
    for index, value in enumerate(an_array(fields.get("replacement"), f"{path}.replacement")):
        where = f"{path}.replacement[{index}]"
        row = an_object(value, where)
        same = row.get("same")
        if same is None:
            replacement.append(read_message(value, where, before))
        elif isinstance(same, str) and (place := places.get(same)) is not None:
            count = a_count(row, "count", where) if "count" in row else 1
            replacement += covered[place : place + count]
        elif isinstance(same, str) and (original := history.original(same)) is not None:
            replacement.append(original)
        else:
            raise wrong(f"{where}.same", "the id of an earlier message", same)
    written = fields.get("receipt")
    receipt = None if written is None else validated(Receipt, written, f"{path}.receipt")
    return Edit(covers, tuple(replacement), receipt, start)
