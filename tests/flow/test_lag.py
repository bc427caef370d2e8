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


class ReportedLag:
    """One partition's lag, and what was reported of it last."""

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
    lags = ReportedLag()
    lags.lag.report(100, ends(500), lags.clock.at_ms - 60_000)
    assert lags.seconds == 60
    lags.clock.at_ms += 1_000
    lags.lag.report(100, ends(500))
    assert lags.seconds == 61
    lags.lag.report(500, ends(500), lags.clock.at_ms - 10)
    assert lags.seconds == 0


def test_idle_time_does_not_count_as_lag() -> None:
    lags = ReportedLag()
    lags.lag.report(100, ends(100), lags.clock.at_ms)
    lags.clock.at_ms += NIGHT_MS
    lags.lag.report(100, ends(100))
    lags.clock.at_ms += 250
    # One has come, or a transaction has begun.
    lags.lag.report(100, ends(101))
    assert lags.seconds == 0.25


def test_a_publisher_clock_that_is_behind_causes_no_lag() -> None:
    lags = ReportedLag()
    lags.lag.report(100, ends(100))
    lags.clock.at_ms += 250
    lags.lag.report(101, ends(102), lags.clock.at_ms - NIGHT_MS)
    assert lags.seconds == 0.25


def test_an_unprocessed_message_lags_since_it_was_first_seen() -> None:
    lags = ReportedLag()
    lags.lag.report(0, None)
    lags.lag.report(0, ends(10))
    lags.clock.at_ms += 5_000
    lags.lag.report(0, ends(10))
    assert lags.seconds == 5


def test_a_position_past_an_older_end_is_no_lag() -> None:
    """The end comes from another request than the records: it may be the older of the two."""
    lags = ReportedLag()
    lags.lag.report(502, ends(500), lags.clock.at_ms - 60_000)
    assert (lags.messages, lags.seconds) == (0, 0)


def test_waiting_behind_an_open_transaction_is_logged_once_and_when_it_ends() -> None:
    lags = ReportedLag()
    held_ms = int(HELD_S * 1_000)
    with capture_logs() as logs:
        lags.lag.report(100, ends(180, stable=100))
        lags.clock.at_ms += held_ms - 1
        lags.lag.report(100, ends(181, stable=100))
        assert logs == []
        lags.clock.at_ms += 1
        for _ in range(3):
            lags.lag.report(100, ends(181, stable=100))
        (warning,) = logs
        assert (warning["partition"], warning["offset"], warning["waiting"]) == (3, 100, 81)
        assert warning["event"] == "waiting behind an open transaction"
        assert "contextgauge doctor" in warning["see"]
        lags.lag.report(100, ends(182))
        assert [entry["event"] for entry in logs[1:]] == ["the open transaction has ended"]
        assert lags.messages == 82


def test_transactions_that_end_and_messages_that_are_not_read_yet_are_no_wait() -> None:
    lags = ReportedLag()
    with capture_logs() as logs:
        for offset in range(100, 104):
            lags.lag.report(offset, ends(offset + 2, stable=offset))
            lags.clock.at_ms += int(HELD_S * 1_000)
        for _ in range(3):  # it is this worker that is behind
            lags.lag.report(50, ends(300, stable=200))
            lags.clock.at_ms += int(HELD_S * 1_000)
    assert logs == []
