"""Times of which one may be unknown."""


def later(one_ms: int | None, other_ms: int | None) -> int | None:
    """Return the later of two times, milliseconds since 1970; the known one if one is null."""
    if one_ms is None or other_ms is None:
        return other_ms if one_ms is None else one_ms
    return max(one_ms, other_ms)
