"""Messages of hooks on this machine, by session: when compactions started and ended.

Transcripts of Claude Code and Codex have neither. `contextgauge hook compaction` adds to one small
file per session; what reads transcripts puts its messages between their lines, by time.
"""

from collections.abc import Sequence
from typing import Any, Final

from contextgauge.json_codec import dumps
from contextgauge.normalise.fields import moment_ms
from streams.edge.files.names import name_of
from streams.edge.files.objects import object_of
from streams.edge.files.small_files import SmallFiles, session_file
from streams.ports import HookedBy, HookMessage

_SUFFIX: Final = ".jsonl"
_FOLDER: Final = "hook-messages"


class HookMessages:
    """The messages in a folder of the user's state; `setting` is the state folder's."""

    def __init__(self, setting: str | None) -> None:
        self._files = SmallFiles(setting, _FOLDER)

    def add(self, session_id: str, messages: Sequence[dict[str, Any]]) -> None:
        """Add messages of one session, in one step. Raises OSError.

        Those of an id that is no plain name are left out: no runtime has such ids.
        """
        name = session_file(session_id, _SUFFIX)
        if name is not None:
            self._files.append(name, b"".join(dumps(each) + b"\n" for each in messages))

    def of(self, session_id: str) -> list[HookMessage]:
        """Return a session's messages, by their times."""
        name = session_file(session_id, _SUFFIX)
        content = None if name is None else self._files.read(name)
        messages = []
        for line in (content or b"").splitlines():
            body = object_of(line)
            time_ms = None if body is None else moment_ms(body.get("timestamp"))
            if time_ms is not None:
                messages.append(HookMessage(time_ms, line))
        return sorted(messages, key=lambda each: each.time_ms)

    def changed(self) -> list[str]:
        """Return the sessions of which messages were added since the last call, at first all."""
        names = self._files.changed()
        return [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]


def hooked_by(setting: str | None) -> HookedBy:
    """Return what reads the messages about the session that a transcript's name names."""
    messages = HookMessages(setting)

    def of(path: str) -> Sequence[HookMessage]:
        name = name_of(path)
        session_id = name.session or name.unit.partition(".")[0]
        return messages.of(session_id) if name.is_main else ()

    return of
