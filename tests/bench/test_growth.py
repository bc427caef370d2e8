"""What `bench.growth` and `bench.freshness` find out of what was measured."""

import time
from itertools import repeat
from typing import cast
from xml.etree import ElementTree as ET

import pytest

from bench import plot, state, steady
from bench.freshness import Pipeline, highest_load
from bench.growth import growth_of
from bench.state import LONG_STEP, measure_cost, measure_long
from bench.steady import Published
from bench.workload import Message

_SVG = "{http://www.w3.org/2000/svg}"


def test_a_long_session_is_measured_step_by_step() -> None:
    steps = measure_long(2 * LONG_STEP)
    assert len(steps) == 2
    assert min(steps) > 0


def test_the_cost_of_a_message_is_measured_on_a_restored_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "MEASURED_MESSAGES", 400)
    monkeypatch.setattr(state, "TEMPLATES", 8)
    measured = measure_cost(sessions=8, at_work=4)
    assert measured["cpu_us_per_message"] > 0
    assert measured["cpu_us_first_after_restore"] > 0


def test_growth_is_the_ratio_of_end_to_beginning() -> None:
    assert growth_of([10.0] * 50 + [12.0] * 10) == 1.2


@pytest.mark.parametrize("is_log", [True, False])
def test_a_plot_has_a_point_for_each_figure(is_log: bool) -> None:
    series = {"few <": [(100, 40.0), (1_000, 50.0), (10_000, 45.0)], "many": [(1_000, 90.0)]}
    drawn = ET.fromstring(plot.lines("a & b", series, is_log=is_log))  # noqa: S314 -- ours
    first, second = (line.attrib["points"].split() for line in drawn.iter(f"{_SVG}polyline"))
    assert (len(first), len(second)) == (3, 1)
    across = [float(point.split(",")[0]) for point in first]
    assert across == sorted(across)
    if is_log:
        assert across[1] - across[0] == pytest.approx(across[2] - across[1], abs=0.2)
    texts = [text.text for text in drawn.iter(f"{_SVG}text")]
    assert {"a & b", "few <", "many", "100"} <= set(texts)


async def test_the_highest_load_is_the_last_that_does_not_fall_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[float] = []

    async def publish(
        _bootstrap: str, _topic: str, _messages: object, rate: float, _s: float
    ) -> Published:
        tried.append(rate)
        # Ever later from some rate on: the publisher is a part of the chain as well.
        return Published(1, time.perf_counter(), [0.1, 900.0 if rate > 650 else 100.0], {})

    class Made:
        bootstrap = "any"

        async def derived(self) -> int:
            return 0

        async def caught_up(self, _messages: int) -> float:
            return time.perf_counter() + (0.1 if tried[-1] <= 700 else 0.9)

    monkeypatch.setattr(steady, "publish", publish)
    message = Message(0, 0, b"", b"")
    load = await highest_load(cast("Pipeline", Made()), repeat(message), 1_600.0)
    assert tried == [800.0, 400.0, 600.0, 700.0]
    assert load == 600.0
