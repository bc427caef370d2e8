"""What a changelog holds of a session, as a worker stores and reads it; and its known causes."""

from collections.abc import Iterable

from streams import codec
from streams.core.derivation import known_causes as known
from streams.core.derivation.known_causes import HASH_BYTES, NOTHING_KNOWN, KnownCauses
from streams.core.derivation.state import Session
from streams.core.derivation.stored_state import StoredPart, pack, unpack
from tests.core.given import SESSION, Given


class Store:
    """What a changelog holds after compaction: the newest value of each part, as bytes."""

    def __init__(self) -> None:
        self.parts: dict[str, tuple[bytes, bytes]] = {}

    def put(self, before: Session | None, after: Session) -> None:
        for name, part in pack(before, after).items():
            if part is None:
                del self.parts[name]
            else:
                self.parts[name] = (codec.dumps(part.fields), part.data)

    def get(self) -> Session:
        stored = self.parts.items()
        parts = {name: StoredPart(codec.loads(fields), data) for name, (fields, data) in stored}
        return unpack(SESSION, parts)


def stored_parts(given: Given) -> dict[str, StoredPart]:
    packed = pack(None, given.session())
    return {name: part for name, part in packed.items() if part is not None}


def cause(number: int) -> bytes:
    """Return a hash; those of all numbers spread over a filter's bits."""
    return number.to_bytes(HASH_BYTES - 2, "big") + (number * 40_503 % 2**16).to_bytes(2, "big")


def with_causes(numbers: Iterable[int], before: KnownCauses = NOTHING_KNOWN) -> KnownCauses:
    for number in numbers:
        before = known.add(before, cause(number))
    return before


def held(seen: KnownCauses) -> bytes:
    """All hashes that are held, in order."""
    return b"".join(part.ordered for part in seen.segments) + seen.tail
