"""Lossless readers and writers: conversations of every provider to the engine's messages and back.

`write_messages(read_messages(value, format), format)` equals `value`, fields and blocks that the
engine does not know included. A changed block is laid over the other fields of what it was read
from. Written in another format than they came in, messages lose what cannot be said there
(thinking and opaque items); calls and results stay.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from contextgauge.compaction.formats import anthropic, plain
from contextgauge.compaction.formats.fields import an_array, with_ids
from contextgauge.compaction.messages import FormatName, Message
from contextgauge.records import Json

_Read: TypeAlias = Callable[[Json, str], Message]
_Write: TypeAlias = Callable[[Sequence[Message]], list[Json]]


_FORMATS: Final[dict[FormatName, tuple[_Read, _Write]]] = {
    "anthropic": (anthropic.read_message, anthropic.write_messages),
    "plain": (plain.read_message, plain.write_messages),
}


def read_messages(value: Sequence[Json], format: FormatName) -> list[Message]:  # noqa: A002 -- its name everywhere
    """Read a conversation. Raises ConfigError with the path of what is wrong."""
    read, _ = _FORMATS[format]
    items = an_array(value, "messages")
    return with_ids([read(each, f"messages[{i}]") for i, each in enumerate(items)], items)


def write_messages(messages: Sequence[Message], format: FormatName) -> list[Json]:  # noqa: A002 -- as above
    """Write a conversation."""
    _, write = _FORMATS[format]
    return write(messages)
