"""The other places where bytes come in: stored views and state, records, commands, files, texts.

Each is given documents of its own, mutated. What it may do is answer, or raise an error of the
product's own, which says what to do; nothing else.
"""

import contextlib
import os
import tempfile
import traceback
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from contextgauge import json_codec
from contextgauge.containers import Line
from contextgauge.delivery.privacy import strip_text
from contextgauge.delivery.shorten import fit
from contextgauge.errors import ContextgaugeError
from contextgauge.normalise.signals import InputMessage
from contextgauge.ports import Headers
from schemas.commands import COMMAND_CLASS_BY_KIND, COMMAND_VERSION
from schemas.messages import DeadLetter
from schemas.views import Aggregates, Compaction, LiveEntry, PartitionView, SessionView
from streams import codec
from streams.codec import view_codec
from streams.codec.commands import read_entry
from streams.codec.control_views import read_view
from streams.codec.conversations import (
    KeptPosition,
    conversation_of,
    read_line,
    read_session_entry,
    write_line,
)
from streams.core.conversation.fold import ConversationFold
from streams.edge.files.reading import expand, read
from streams.edge.files.session_reading import SessionReading
from streams.flow.dead_letters.letters import letter_of
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.deriver import Deriver, input_message
from streams.flow.derive.partition_state import InputPartition, PartitionState
from streams.flow.derive.stored_sessions import StoredSessions
from streams.flow.project.fold import LoggedRecord
from streams.ports import LogRecord
from tests.doubles.dump import view_fold
from tests.flow.derive_kit import RULES
from tests.fuzz.checked import NOW_MS, must
from tests.fuzz.mutation import Mutator
from tests.fuzz.portion import Failure, Input, kind_of
from tests.fuzz.seeds import stories
from tests.fuzz.templates import Template, template_of

OF_EACH: Final = 400
"""Inputs of each entrance that go with one portion of messages."""


class Written(NamedTuple):
    """What the product writes: the seeds of what it reads."""

    records: list[tuple[Headers, bytes]]
    events: list[bytes]
    views: dict[type, list[bytes]]
    state: list[tuple[bytes, bytes]]
    lines: list[bytes]
    commands: list[tuple[Headers, bytes]]


Mutate = Callable[[Iterable[bytes]], bytes]


@cache
def written() -> Written:
    """Return what the product writes of the first stories."""
    records, events, lines = [], list[bytes](), list[bytes]()
    views: dict[type, list[bytes]] = {
        kind: [] for kind in (SessionView, Compaction, LiveEntry, Aggregates, PartitionView)
    }
    config = DeriveConfig(cold_hours=-1)
    state = PartitionState(RULES, config, InputPartition(0, 1, 1))
    fold = view_fold()
    for offset, value in enumerate(line for story in stories()[:12] for line in story[:40]):
        state.apply([LogRecord(offset, NOW_MS, b"a-session", value, (), created=True)])
        lines.append(write_line(offset, NOW_MS, {"value": "a"}))
    changes = state.finish(10_000)
    for offset, new in enumerate(changes.records):
        if new.topic == config.events_topic and new.value is not None:
            records.append((new.headers, new.value))
            record = codec.from_binary(new.headers, new.value)
            events.append(codec.to_structured(record))
            fold.add(LoggedRecord(offset, NOW_MS, record))
    dump = fold.documents.held
    views[SessionView] = list(dump.views.values())
    views[Compaction] = [one for each in dump.compactions.values() for one in each.values()]
    views[LiveEntry] = [entry.document for entry in dump.live[:50]]
    views[Aggregates] = [value for name, value in dump.stats.items() if name != b"partition"][:50]
    views[PartitionView] = [value for name, value in dump.stats.items() if name == b"partition"]
    stored = [(key, value) for key, value in changes.changes.items() if value is not None]
    return Written(records, events, views, stored, lines, _commands())


def _commands() -> list[tuple[Headers, bytes]]:
    samples = {"str": "a", "int": 1, "bool": True, "float": 0.5}
    commands: list[tuple[Headers, bytes]] = []
    for kind, data in COMMAND_CLASS_BY_KIND.items():
        body = {
            each.name: samples.get(str(getattr(each.type, "__name__", each.type)), "a")
            for each in fields(data)
        }
        headers: Headers = (
            ("ce_specversion", b"1.0"),
            ("ce_id", b"an-id"),
            ("ce_type", f"contextgauge.command.{kind}.v{COMMAND_VERSION}".encode()),
            ("ce_time", b"2026-11-01T12:00:00.000Z"),
        )
        commands.append((headers, json_codec.dumps(body)))
    return commands


class Entrances:
    """All entrances, by name: each takes one mutated input."""

    def __init__(self, chance: Random, folder: Path) -> None:
        self._chance = chance
        self._mutator = Mutator(chance)
        self._templates: dict[bytes, Template | bytes] = {}
        self._folder = folder
        self.last: object = None
        """What was given last: what is shown of an error."""

    def names(self) -> list[str]:
        """Return the names of all entrances."""
        return [name.removeprefix("take_") for name in dir(self) if name.startswith("take_")]

    def _mutated(self, documents: list[bytes]) -> bytes:
        document = self._mutator.one_of(documents)
        if document not in self._templates:
            self._templates[document] = template_of(document) or document
        self.last = value = self._mutator.message(self._templates[document])
        return value

    def _headers(self, headers: Headers) -> Headers:
        """Return headers, of which one is missing, another, or there twice."""
        mutated, chance = list(headers), self._chance
        if chance.random() < 0.4:
            place = chance.randrange(len(mutated))
            name, value = mutated[place]
            held = value or b""
            other = chance.choice(
                [None, b"", b"-1", b"\xff", b"1e9", held + b"0", held[:-1], b"9" * 5_000]
            )
            change = chance.randrange(3)
            if change == 0:
                del mutated[place]
            elif change == 1:
                mutated[place] = (name, other)
            else:
                mutated.append((name, other))
        self.last = (tuple(mutated), self.last)
        return tuple(mutated)

    def take_record(self) -> None:
        """A record of `context.events`, in both modes."""
        headers, value = self._mutator.one_of(written().records)
        value = self._mutated([value]) if self._chance.random() < 0.8 else value
        headers = self._headers(headers)
        with contextlib.suppress(ContextgaugeError):
            codec.binary_to_structured(headers, value)
        record = codec.from_binary(headers, value)
        codec.to_structured(record)
        fold = view_fold()
        fold.add(LoggedRecord(0, NOW_MS, record))

    def take_event(self) -> None:
        """A record as it is stored in Redis, and in files."""
        body = json_codec.decode_fast(self._mutated(written().events))
        if isinstance(body, dict):
            codec.from_structured(body)

    def take_view(self) -> None:
        """A view as it is stored in Redis."""
        kind: Any = self._mutator.one_of(list(written().views))
        document = self._mutated(written().views[kind])
        other = (
            self._mutator.one_of(list(written().views)) if self._chance.random() < 0.02 else kind
        )
        view = view_codec.decode(other, document)
        view_codec.encode(view)

    def take_control_view(self) -> None:
        """What the control plane stored of a session."""
        read_view(self._mutated([b'{"version":1,"view":{"session_id":"a","commands":[]}}']))

    def take_command(self) -> None:
        """A record of `context.commands`."""
        headers, value = self._mutator.one_of(written().commands)
        read_entry(self._headers(headers), self._mutated([value]))

    def take_state(self) -> None:
        """Entries of `context.state`, as a worker restores them; then a message of that session."""
        state = PartitionState(RULES, DeriveConfig(cold_hours=-1), InputPartition(0, 1, 1))
        entries, chance = [], self._chance.random
        is_foreign = chance() < 0.5
        for key, value in written().state:
            own_key, own_value = key, value
            if is_foreign and chance() < 0.02:
                own_value = self._mutated_state(value)
            if is_foreign and chance() < 0.002:
                own_key = self._mutated([key])
            if chance() < 0.98:
                entries.append((own_key, own_value))
        self.last = "entries of the state"
        state.add(entries)
        for _ in state.load():
            pass
        stored = StoredSessions("context.state")
        stored.add(entries)
        for session_id in {json_codec.loads(key)[0] for key, _ in entries} - {"position"}:
            stored.take(session_id)
        # Whose figures are of another type but its parts whole was written by no build: only
        # workers may write this topic.
        for number in range(0 if is_foreign else 10):
            value = self._mutator.message(None)
            state.apply([LogRecord(20_000 + number, NOW_MS, b"a-session", value, (), created=True)])
        state.finish(20_010)

    def _mutated_state(self, value: bytes) -> bytes:
        head, _, data = value.partition(b"\n")
        document = b'{"a":' + head + b"}"
        mutated = self._mutated([document])
        if mutated.startswith(b'{"a":') and mutated.endswith(b"}"):
            mutated = mutated[5:-1]
        chance = self._chance.random()
        if chance < 0.2:
            data = data[: self._chance.randrange(len(data) + 1)]
        return mutated + b"\n" + data if data else mutated

    def take_letter(self) -> None:
        """A record of `agent.messages.dead`, and of `agent.messages` with any headers."""
        value = self._mutator.message(None)
        self.last = value
        names = (
            "dead_reason",
            "src_offset",
            "src_partition",
            "src_topic",
            "src_timestamp",
            "observed",
        )
        chance = self._chance
        headers: Headers = tuple(
            (name, chance.choice([b"", b"live", b"-1", b"\xff\xfe", b"1" * 5_000, b"0x1", b"a"]))
            for name in (*names, "task_id", "agent_id")
            if chance.random() < 0.6
        )
        key = chance.choice([None, b"", b"a", b"\xff", b"\xed\xa0\x80", b"s" * 20_000])
        time_ms = chance.choice([-1, 0, NOW_MS, 2**62])
        record = LogRecord(1, time_ms, key, value, headers, created=chance.random() < 0.5)
        letter_of(0, record)
        Deriver(RULES).derive(input_message(record))

    def take_conversation(self) -> None:
        """Messages that are kept as a conversation, and the conversation that is read back."""
        fold = ConversationFold.of_session(None, None, 0)
        story = self._mutator.story()
        self.last = values = [self._mutator.message(each) for each in story[:20]]
        for offset, value in enumerate(values):
            body = json_codec.decode(value)
            if isinstance(body, dict):
                fold.add(body, offset)
        again = ConversationFold()
        again.begin_with(json_codec.loads(json_codec.dumps(fold.base())), 20)
        must(len(again.history.active) == len(fold.history.active), "a base that reads as another")

    def take_stored_line(self) -> None:
        """Lines and entries of a conversation, as they are stored in Redis."""
        entry = b'{"agent_id":null,"project":null,"first_offset":0,"last_ms":0,"lines":2,"size":9}'
        line = b'{"o":1,"t":2,"l":{"type":"user","message":{"role":"user","content":"a"}}}'
        base = b'{"o":1,"t":2,"b":{"version":1,"messages":[]}}'
        kind = self._chance.randrange(3)
        if kind == 0:
            read_session_entry(self._mutated([entry]))
        elif kind == 1:
            read_line(self._mutated([line, base]))
        else:
            conversation_of(entry, [self._mutated([line, base]), line], KeptPosition(3))

    def take_shortened(self) -> None:
        """A line that is shortened, and one of which the texts are left out."""
        value = self._mutator.message(None)
        if self._chance.random() < 0.3:
            value = self._mutator.large(20_000)
        self.last = value
        line = Line("a", 1, value, len(value), "a-session")
        limit = self._chance.choice([100, 300, 1_000, 5_000])
        shorter = fit(line, limit)
        if isinstance(shorter, bytes):
            must(len(shorter) <= limit, f"{len(shorter)} bytes where {limit} are allowed")
        stripped = strip_text(line, b"key")
        if not isinstance(stripped, DeadLetter):
            Deriver(RULES).derive(InputMessage(stripped.value, "a-session"))

    def take_file(self) -> None:
        """A transcript, a rollout or a stream, as commands and the status line read it."""
        end = self._chance.choice([b"\n", b"\n", b"\r\n", b"\n\n", b"\r"])
        story = self._mutator.story()
        content = end.join(self._mutator.message(each) for each in story[:20])
        self.last = content
        path = self._folder / "session.jsonl"
        path.write_bytes(content)
        deriver = Deriver(RULES)
        size = 0
        for block in read(expand([os.fspath(path)])):
            for line in block:
                size += line.size
                deriver.derive(InputMessage(line.value, line.session_hint))
        must(size <= len(content), "lines larger than their file")
        reading = SessionReading(os.fspath(path), {})
        for _ in (*reading.lines(2_000), *reading.end()):
            pass
        SessionReading(os.fspath(path), json_codec.loads(json_codec.dumps(reading.marks)))


def run_entrances(seed: int, number: int, inputs: int = OF_EACH) -> list[Failure]:
    """Give each entrance so many inputs; return what is wrong, the first of each kind."""
    failures: dict[str, Failure] = {}
    with tempfile.TemporaryDirectory() as folder:
        entrances = Entrances(Random(f"{seed} {number} entrances"), Path(folder))
        for name in entrances.names():
            for _ in range(inputs):
                try:
                    getattr(entrances, f"take_{name}")()
                except ContextgaugeError:
                    continue
                except Exception as error:  # noqa: BLE001 -- whatever it is: it is what is looked for
                    kind = f"{name}: {kind_of(error)}"
                    what = "".join(traceback.format_exception(error)[-6:])
                    given = f"{entrances.last!r}"[:2_000].encode()
                    failures.setdefault(kind, Failure(kind, what, (Input(given),)))
    return list(failures.values())
