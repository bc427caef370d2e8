"""How values are formatted in the doctor's messages."""

from collections.abc import Iterable, Mapping

from contextgauge.units import DAY_MS, HOUR_MS, MIB, MINUTE_MS, SECOND_MS

_KIB = 1_024
_LISTED = 8


def age(duration_ms: int) -> str:
    """Return a duration in one unit: 250 ms, 45 s, 90 min, 20 h, 3 d."""
    for length, unit, up_to in (
        (1, "ms", SECOND_MS),
        (SECOND_MS, "s", 2 * MINUTE_MS),
        (MINUTE_MS, "min", 2 * HOUR_MS),
        (HOUR_MS, "h", 2 * DAY_MS),
    ):
        if duration_ms < up_to:
            return f"{max(duration_ms, 0) // length} {unit}"
    return f"{duration_ms // DAY_MS} d"


def size(count: int) -> str:
    """Return bytes: 9 MiB, 512 KiB, 100 bytes, 1.5 GiB."""
    for unit, name in ((1_024 * MIB, "GiB"), (MIB, "MiB"), (_KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{count} bytes"


def counted(count: int, noun: str) -> str:
    """Return a number of things: 1 message, 1,200 messages, 3 copies, 2 batches."""
    if count != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else noun + "es" * noun.endswith(("s", "ch"))
        noun += "s" * (not noun.endswith("s"))
    return f"{count:,} {noun}"


def listed(names: Iterable[object]) -> str:
    """Return names separated by commas; beyond eight, how many more there are."""
    texts = [str(name) for name in names]
    more = len(texts) - _LISTED
    return ", ".join(texts[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def number(configs: Mapping[str, str], name: str, default: int = 0) -> int:
    """Return an integer that a service reported as text."""
    text = configs.get(name, "")
    return int(text) if text.lstrip("-").isdigit() else default
