"""Times in options: moments, ages, and errors for what is neither."""

from datetime import UTC, datetime

import pytest

from contextgauge.errors import ConfigError
from schemas.topics import DAY_MS, HOUR_MS
from streams.cli.times import parse_time

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("90s", NOW_MS - 90_000),
        ("15m", NOW_MS - 900_000),
        ("15min", NOW_MS - 900_000),
        ("2h", NOW_MS - 2 * HOUR_MS),
        ("2 h", NOW_MS - 2 * HOUR_MS),
        ("3d ago", NOW_MS - 3 * DAY_MS),
        ("1w", NOW_MS - 7 * DAY_MS),
        ("999999999d", 0),
        ("2026-05-01", 1_777_593_600_000),
        ("2026-05-01T14:30", 1_777_645_800_000),
        ("2026-05-01 14:30:00", 1_777_645_800_000),
        ("2026-05-01T14:30:00.250Z", 1_777_645_800_250),
        ("2026-05-01T14:30:00+02:00", 1_777_638_600_000),
        ("0001-01-01", 0),
    ],
)
def test_a_valid_time_is_parsed(text: str, time_ms: int) -> None:
    assert parse_time("--since", text, NOW_MS) == time_ms


def test_the_times_above_are_correct() -> None:
    assert datetime.fromtimestamp(1_777_645_800, UTC).isoformat() == "2026-05-01T14:30:00+00:00"


@pytest.mark.parametrize("text", ["", "yesterday", "2x", "h", "-2h", "2026-13-01", "14:30", "12"])
def test_an_invalid_time_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--since .* is not a valid time: give"):
        parse_time("--since", text, NOW_MS)
