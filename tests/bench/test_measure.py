"""The figures of a run, the verdict over all, and what a process costs."""

import os
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping

import pytest

from bench import plot, process
from bench.freshness import delays
from bench.measure import Measured, Ran, Sample, figures
from bench.run import table, verdict


def ran(*samples: tuple[float, int, float]) -> Ran:
    return Ran(
        0.0,
        [Sample(sampled_s, count, cpu, 2 * cpu) for sampled_s, count, cpu in samples],
        50.0,
        0.5,
    )


def measured(system: str, rate: float, cpu: float = 10.0) -> Measured:
    return Measured(system, rate, cpu, 1.0, 100.0, 1.0, 0.1)


def test_the_warm_up_is_not_counted() -> None:
    measured = figures("x", ran((1, 0, 3.0), (2, 100, 4.0), (4, 200, 5.0), (8, 1_000, 6.0)), 150)

    assert measured.messages_per_s == pytest.approx(800 / 4)
    assert measured.cpu_s_per_million == pytest.approx(1.0 / 800 * 1e6)
    assert measured.broker_cpu_s_per_million == pytest.approx(2.0 / 800 * 1e6)
    assert measured.start_s == 2


def test_a_run_that_committed_once_gives_no_rate() -> None:
    with pytest.raises(RuntimeError, match="take more messages"):
        figures("x", ran((1, 0, 3.0), (2, 1_000, 4.0)), 500)


def test_ratios_are_of_medians_ours_divided_by_theirs() -> None:
    runs: Mapping[str, list[Measured]] = {
        "contextgauge": [measured("contextgauge", rate, 6.0) for rate in (10, 90_000, 100_000)],
        "quix_eos": [measured("quix_eos", 45_000, 12.0)],
        "raw_aiokafka": [measured("raw_aiokafka", 120_000)],
    }

    given = verdict(runs, 41.5, 1.04)

    assert given == {
        "ratios": {
            "quix_eos": 2.0,
            "kafka_streams_eos_v2": None,
            "raw_aiokafka": 0.75,
            "cpu_vs_quix_eos": 0.5,
        },
        "freshness_p99_ms_at_half_load": 41.5,
        "cost_growth_1k_to_1m_sessions": 1.04,
    }
    assert "90,000" in table(runs)


def test_the_plot_is_svg_with_a_bar_for_each_system_that_ran() -> None:
    drawn = plot.throughput({"one & only": [measured("a", 5.0), measured("a", 7.0)], "none": []})

    root = ET.fromstring(drawn)  # noqa: S314 -- written a line above
    names = [element.tag.rpartition("}")[2] for element in root]
    assert names.count("circle") == 2
    assert names.count("rect") == 2
    assert "one & only" in "".join(root.itertext())


def test_cpu_seconds_and_memory_of_this_very_process() -> None:
    before = process.cost(os.getpid())
    begin = time.process_time()
    while time.process_time() - begin < 0.1:
        pass
    after = process.cost(os.getpid())

    assert after.cpu_s - before.cpu_s >= 0.05
    assert after.peak_mib > 10


def test_a_record_is_readable_from_the_first_position_past_it() -> None:
    seen = [[(5, 1.0), (8, 2.0), (12, 3.5)], [(1, 9.0)]]
    handed_over = {(0, 100): 0.5, (0, 101): 0.75, (1, 100): 8.0}

    delays_ms = delays([(0, 7, 100), (0, 8, 101), (1, 0, 100), (1, 0, 999)], handed_over, seen)

    assert delays_ms == [1_000.0, 1_500.0, 2_750.0]
