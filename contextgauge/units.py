"""Units of time and size, for settings and limits."""

from typing import Final

HOUR_MS: Final = 60 * 60 * 1000
DAY_MS: Final = 24 * HOUR_MS
MIB: Final = 1024 * 1024
