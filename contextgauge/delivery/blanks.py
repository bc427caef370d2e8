"""What stands for a value whose texts are left out."""

import math

from contextgauge.records import Json

LEFT_OUT = "contextgauge_left_out"
"""Only field of an object that was left out: the characters in all of its names and texts."""


def stub(text: str) -> str:
    """Return what stands for a text: its length."""
    return f"[contextgauge: {len(text)} characters left out]" if text else ""


def blank(value: Json) -> Json:
    """Return what stands for a value of which nothing is known."""
    match value:
        case str():
            return stub(value)
        case dict():
            return {LEFT_OUT: characters(value)} if value else {}
        case list():
            return [f"[contextgauge: {characters(value)} characters left out]"] if value else []
        case float() if not math.isfinite(value):
            return 0.0  # JSON has no such number; null would mean something else (R14)
        case _:
            return value


def characters(value: Json) -> int:
    """Return the length of all names and texts in a value, however deep it is."""
    total = 0
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                total += len(text)
            case dict() as entries:
                total += sum(map(len, entries))
                waiting.extend(entries.values())
            case list() as entries:
                waiting.extend(entries)
            case _:
                pass
    return total
