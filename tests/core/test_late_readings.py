"""A reading that comes late (R34) is a former size: nothing takes it for that of now."""

from streams.core.alerts.rules import AlertPlan, Pressure, Rule
from streams.core.alerts.watch import Watch
from tests.core.control.trigger_kit import ON, Deciding, at, init, requests
from tests.core.given import START_MS, Given
from tests.core.history import History, view_of

TELEMETRY = {"contextgauge": {"telemetry": True}}


def test_a_late_reading_is_counted_and_leaves_the_size_as_it_is() -> None:
    history = History()
    records = [
        history.reading(50_000, messages=3),
        history.reading(20_000, messages=4, at=-9, late=True),
    ]
    view = view_of(*records).chains["main"]
    assert (view.used_tokens, view.used_percent, view.messages) == (50_000, 25.0, 4)
    assert (view.as_of_ms, view.peak_tokens) == (records[0].time_ms, 50_000)
    peak = view_of(*records, history.reading(90_000, at=-9, late=True)).chains["main"]
    assert (peak.used_tokens, peak.peak_tokens, peak.peak_percent) == (50_000, 90_000, 45.0)
    # What came before is unknown, and stays so.
    assert view_of(history.reading(90_000, late=True)).chains["main"].used_tokens is None


def test_a_former_size_raises_no_alert() -> None:
    rule = Rule(name="the rule", condition=Pressure(80), targets=("ops",))
    watch = Watch(AlertPlan(max_age_ms=60_000, targets=(), rules=(rule,)))
    given = Given()
    for body, alerts in (({**at(20, 60), **TELEMETRY}, 0), (at(90, 1), 0), (at(90, 90), 1)):
        raised = [watch.observe(record, START_MS, START_MS) for record in given.take(body)]
        assert sum(map(len, raised)) == alerts


def test_a_former_size_requests_no_compaction() -> None:
    deciding = Deciding(ON)
    newest = {**at(20, 60), **TELEMETRY}
    assert deciding.take(init(at=0), newest, at(90, 1)) == []
    assert requests(deciding.take(at(90, 90)))
