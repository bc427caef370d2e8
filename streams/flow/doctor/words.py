"""How figures are said in findings."""

from schemas.topics import DAY_MS, HOUR_MS, MIB

_MINUTE_MS = 60_000
_SECOND_MS = 1_000
_KIB = 1_024


def age(duration_ms: int) -> str:
    """Return a duration in one unit: 250 ms, 45 s, 90 min, 20 h, 3 d."""
    for size, unit, up_to in (
        (1, "ms", _SECOND_MS),
        (_SECOND_MS, "s", 2 * _MINUTE_MS),
        (_MINUTE_MS, "min", 2 * HOUR_MS),
        (HOUR_MS, "h", 2 * DAY_MS),
    ):
        if duration_ms < up_to:
            return f"{max(duration_ms, 0) // size} {unit}"
    return f"{duration_ms // DAY_MS} d"


def size(count: int) -> str:
    """Return bytes: 9 MiB, 512 KiB, 100 bytes, 1.5 GiB."""
    for unit, name in ((1_024 * MIB, "GiB"), (MIB, "MiB"), (_KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{count} bytes"


def some(count: int, name: str) -> str:
    """Return a number of things: 1 message, 1,200 messages, 3 copies, 2 addresses."""
    if count != 1:
        name = f"{name[:-1]}ies" if name.endswith("y") else name + "es" * name.endswith("s")
        name += "s" * (not name.endswith("s"))
    return f"{count:,} {name}"


def share(part: int, whole: int) -> str:
    """Return a share in percent; what is there is never 0 %."""
    percent = part * 100 // whole if whole else 0
    return "below 1 %" if part and not percent else f"{percent} %"


def listed(names: list[str], most: int = 5) -> str:
    """Return names by commas, the rest of many as a number."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
