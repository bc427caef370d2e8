"""Times in options: a moment, or how long ago."""

import re
from datetime import UTC, datetime
from typing import Final

from contextgauge.errors import ConfigError
from schemas.topics import DAY_MS, HOUR_MS

TIME_FORMS: Final = (
    "90s, 15m, 2h, 3d or 1w ago, or a time such as 2026-05-01 or 2026-05-01T14:30 (UTC if there is "
    "no zone)"
)
"""For an option's help."""

_AGO = re.compile(r"(\d{1,9})\s*(s|m|min|h|d|w)", re.ASCII)
_UNITS_MS: Final = {
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": HOUR_MS,
    "d": DAY_MS,
    "w": 7 * DAY_MS,
}


def parse_time(option: str, text: str, now_ms: int) -> int:
    """Parse a time or an age to milliseconds since 1970. Raises ConfigError."""
    ago = _AGO.fullmatch(text.strip().removesuffix(" ago").removesuffix("ago"))
    if ago is not None:
        return max(0, now_ms - int(ago[1]) * _UNITS_MS[ago[2]])
    try:
        time = datetime.fromisoformat(text.strip())
        in_zone = time if time.tzinfo else time.replace(tzinfo=UTC)
        return max(0, int(in_zone.timestamp() * 1000))
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{option} {text!r} is not a valid time: give an age, such as 90s, 15m, 2h, 3d or 1w, "
            "or a time such as 2026-05-01 or 2026-05-01T14:30:00Z"
        ) from None
