"""What the tests of messages without texts share."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from contextgauge.containers import Line
from contextgauge.delivery.blanks import LEFT_OUT
from contextgauge.delivery.privacy import strip_text, without_text
from contextgauge.normalise.signals import InputMessage
from contextgauge.window_catalog import bundled
from schemas.messages import DeadLetter
from schemas.records import Record
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.flow.derive.deriver import Deriver
from tests.core.given import SESSION

RULES = Rules(bundled(), content=True)
KEY = b"k" * 32
STUB = re.compile(r"\[contextgauge: [0-9]+ characters left out\]")
IDS = ("attempt_id", "boundary_id")
KEYED = ("input_hash", "path_hashes")
"""With a secret, where texts are left out: they tell nothing of the texts."""


def stub(text: str) -> str:
    return f"[contextgauge: {len(text)} characters left out]"


def stripped(body: dict[str, Any]) -> dict[str, Any]:
    return without_text(body, json.dumps(body).encode(), KEY)


def derived(lines: Iterable[bytes], hint: str = SESSION) -> list[Record]:
    deriver = Deriver(RULES)
    return [record for line in lines for record in deriver.derive(InputMessage(line, hint)).records]


def sent(lines: Iterable[bytes]) -> list[bytes]:
    """Return what leaves the machine; what cannot be read does not."""
    found = [strip_text(Line("f", 1, line, len(line), None), KEY) for line in lines]
    return [line.value for line in found if isinstance(line, Line)]


def check_same_records(lines: Sequence[bytes]) -> int:
    """Check that the records are the same but for texts and ids; return how many there are."""
    readable = [line for line in lines if not isinstance(codec.decode(line), DeadLetter)]
    whole, without = derived(readable), derived(sent(lines))
    names: list[dict[str, int]] = [
        {record.id: number for number, record in enumerate(records)} for records in (whole, without)
    ]
    assert [record.type for record in whole] == [record.type for record in without]
    for value, other in zip(whole, without, strict=True):
        assert (value.subject, value.time_ms, value.sequence) == (
            other.subject,
            other.time_ms,
            other.sequence,
        )
        data, shown = json.loads(codec.dumps(value.data)), json.loads(codec.dumps(other.data))
        for field in IDS:
            if data.get(field) is not None:
                data[field] = names[0][data[field]]
                shown[field] = names[1][shown[field]]
        for field in KEYED:
            hashes, keyed = data.pop(field, None), shown.pop(field, None)
            assert bool(hashes) == bool(keyed)
            assert not hashes or hashes != keyed
        assert alike(data, shown), (data, shown)
    return len(whole)


def alike(one: Any, other: Any) -> bool:
    """Return whether they are equal, where a stub is equal to any text or unknown part."""
    if isinstance(one, str) and isinstance(other, str):
        # Every text of a summary of several blocks has a stub of its own.
        return one == other or (bool(one) and STUB.search(other) is not None)
    if isinstance(one, dict) and isinstance(other, dict):
        if LEFT_OUT in other:
            return True
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        if len(other) == 1 and isinstance(other[0], str) and STUB.fullmatch(other[0]):
            return True
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def texts(value: Any) -> Iterator[str]:
    """Yield what is certainly a text: names and strings of several words."""
    if isinstance(value, str):
        if len(value) > 8 and re.search(r"\w\s+\w", value):
            yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts(key)
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def check_no_text(lines: Iterable[bytes]) -> None:
    for line in lines:
        body = codec.decode(line)
        if isinstance(body, DeadLetter):
            continue
        left = set(strings(codec.decode(sent([line])[0])))
        unchanged = {text for text in texts(body) if text in left}
        # A runtime's own words for the parts of a context are a figure's labels.
        answers = (body.get("context_usage"), (body.get("response") or {}).get("response"))
        labels = {
            row.get("name")
            for answer in answers
            if isinstance(answer, dict)
            for row in answer.get("categories", ())
        }
        assert unchanged <= labels, unchanged
