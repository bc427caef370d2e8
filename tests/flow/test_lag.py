"""How far behind a partition is said to be."""

from contextgauge.clock import SystemClock
from streams.flow.common.lag import Lag
from tests.flow.derive_kit import Figures, worker_ports

NIGHT_MS = 8 * 3_600_000


class HandClock(SystemClock):
    """A clock that the test moves."""

    at_ms = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.at_ms


class Told:
    """One partition's lag, and what was told of it last."""

    def __init__(self) -> None:
        self.clock, self._figures = HandClock(), Figures()
        given = worker_ports(self.clock, self._figures)
        self.lag = Lag(given, 3, "derive_lag_messages", "derive_lag_seconds")

    @property
    def messages(self) -> float:
        return self._figures.gauges["derive_lag_messages", "3"]

    @property
    def seconds(self) -> float:
        return self._figures.gauges["derive_lag_seconds", "3"]


def test_the_lag_is_the_age_of_the_last_processed_message() -> None:
    told = Told()
    told.lag.report(100, 500, told.clock.at_ms - 60_000)
    assert told.seconds == 60
    told.clock.at_ms += 1_000
    told.lag.report(100, 500)
    assert told.seconds == 61
    told.lag.report(500, 500, told.clock.at_ms - 10)
    assert told.seconds == 0


def test_idle_time_does_not_count_as_lag() -> None:
    told = Told()
    told.lag.report(100, 100, told.clock.at_ms)
    told.clock.at_ms += NIGHT_MS
    told.lag.report(100, 100)
    told.clock.at_ms += 250
    # One has come, or a transaction has begun.
    told.lag.report(100, 101)
    assert told.seconds == 0.25


def test_a_publisher_clock_that_is_behind_causes_no_lag() -> None:
    told = Told()
    told.lag.report(100, 100)
    told.clock.at_ms += 250
    told.lag.report(101, 102, told.clock.at_ms - NIGHT_MS)
    assert told.seconds == 0.25


def test_an_unprocessed_message_lags_since_it_was_first_seen() -> None:
    told = Told()
    told.lag.report(0, None)
    told.lag.report(0, 10)
    told.clock.at_ms += 5_000
    told.lag.report(0, 10)
    assert told.seconds == 5


def test_a_position_past_an_older_end_is_no_lag() -> None:
    """The end comes from another request than the records: it may be the older of the two."""
    told = Told()
    told.lag.report(502, 500, told.clock.at_ms - 60_000)
    assert (told.messages, told.seconds) == (0, 0)
