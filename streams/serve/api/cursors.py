"""Cursors: where an answer ended, and in which generation. Opaque to whoever gets one."""

import base64
import binascii
from typing import NamedTuple, TypeAlias

from schemas.records import Json
from streams import codec
from streams.serve.api.problems import bad_cursor

Form: TypeAlias = tuple[type | tuple[type, ...], ...]
"""What a cursor's place consists of: a type, or one of several, for each part."""


class Cursor(NamedTuple):
    """A generation, what was asked, and the place after which the answer goes on."""

    generation: int
    asked: str
    after: tuple[int | float | str, ...]

    def written(self) -> str:
        """Return it as a reader gets it."""
        told: list[Json] = [self.generation, self.asked, *self.after]
        return base64.urlsafe_b64encode(codec.dumps(told)).rstrip(b"=").decode()


def read(text: str, asked: str, form: Form) -> Cursor:
    """Read a cursor that was given for what is asked. Raises Problem for any other text."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        found = codec.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise bad_cursor() from None
    if not isinstance(found, list) or len(found) != len(form) + 2 or found[1] != asked:
        raise bad_cursor()
    generation, _, *after = found
    fits = all(
        isinstance(part, kind) and not isinstance(part, bool)
        for part, kind in zip((generation, *after), (int, *form), strict=True)
    )
    # Beyond 64 bits is no offset, no time and no generation.
    if not fits or any(abs(part) >= 1 << 63 for part in found if isinstance(part, int)):
        raise bad_cursor()
    return Cursor(generation, asked, tuple(after))
