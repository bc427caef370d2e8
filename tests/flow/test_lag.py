"""How far behind a partition is said to be."""

from structlog.testing import capture_logs

from contextgauge.clock import SystemClock
from streams.flow.common.lag import HELD_S, Lag
from streams.ports import Ends
from tests.flow.derive_kit import Figures, worker_ports

NIGHT_MS = 8 * 3_600_000


class HandClock(SystemClock):
    """A clock that the test moves."""

    at_ms = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_s(self) -> float:
        return self.at_ms / 1_000


def ends(high: int, stable: int | None = None) -> Ends:
    """Return where a partition ends; by default all is settled."""
    return Ends(high if stable is None else stable, high)


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
    told.lag.report(100, ends(500), told.clock.at_ms - 60_000)
    assert told.seconds == 60
    told.clock.at_ms += 1_000
    told.lag.report(100, ends(500))
    assert told.seconds == 61
    told.lag.report(500, ends(500), told.clock.at_ms - 10)
    assert told.seconds == 0


def test_idle_time_does_not_count_as_lag() -> None:
    told = Told()
    told.lag.report(100, ends(100), told.clock.at_ms)
    told.clock.at_ms += NIGHT_MS
    told.lag.report(100, ends(100))
    told.clock.at_ms += 250
    # One has come, or a transaction has begun.
    told.lag.report(100, ends(101))
    assert told.seconds == 0.25


def test_a_publisher_clock_that_is_behind_causes_no_lag() -> None:
    told = Told()
    told.lag.report(100, ends(100))
    told.clock.at_ms += 250
    told.lag.report(101, ends(102), told.clock.at_ms - NIGHT_MS)
    assert told.seconds == 0.25


def test_an_unprocessed_message_lags_since_it_was_first_seen() -> None:
    told = Told()
    told.lag.report(0, None)
    told.lag.report(0, ends(10))
    told.clock.at_ms += 5_000
    told.lag.report(0, ends(10))
    assert told.seconds == 5


def test_a_position_past_an_older_end_is_no_lag() -> None:
    """The end comes from another request than the records: it may be the older of the two."""
    told = Told()
    told.lag.report(502, ends(500), told.clock.at_ms - 60_000)
    assert (told.messages, told.seconds) == (0, 0)


def test_waiting_behind_an_open_transaction_is_logged_once_and_when_it_ends() -> None:
    told = Told()
    held_ms = int(HELD_S * 1_000)
    with capture_logs() as logs:
        told.lag.report(100, ends(180, stable=100))
        told.clock.at_ms += held_ms - 1
        told.lag.report(100, ends(181, stable=100))
        assert logs == []
        told.clock.at_ms += 1
        for _ in range(3):
            told.lag.report(100, ends(181, stable=100))
        (warning,) = logs
        assert (warning["partition"], warning["offset"], warning["waiting"]) == (3, 100, 81)
        assert warning["event"] == "waiting behind an open transaction"
        assert "contextgauge doctor" in warning["see"]
        told.lag.report(100, ends(182))
        assert [entry["event"] for entry in logs[1:]] == ["the open transaction has ended"]
        assert told.messages == 82


def test_transactions_that_end_and_messages_that_are_not_read_yet_are_no_wait() -> None:
    told = Told()
    with capture_logs() as logs:
        for offset in range(100, 104):
            told.lag.report(offset, ends(offset + 2, stable=offset))
            told.clock.at_ms += int(HELD_S * 1_000)
        for _ in range(3):  # it is this worker that is behind
            told.lag.report(50, ends(300, stable=200))
            told.clock.at_ms += int(HELD_S * 1_000)
    assert logs == []
