"""Scaling: what is started for a number of processes, and what its figures say."""

from pathlib import Path

from bench.measure import Measured
from bench.scaling import system, told
from bench.systems import Job


def test_one_process_is_the_command_without_the_option() -> None:
    job = Job("127.0.0.1:9092", "run", Path())
    assert system(1).command(job).arguments[-2:] == ["streams", "derive"]
    assert system(2).command(job).arguments[-3:] == ["derive", "--processes", "2"]


def test_the_figures_are_medians_and_say_what_is_busy() -> None:
    runs = [
        Measured("contextgauge", rate, cpu_s, 5.0, 300.0, 1.0, 0.5)
        for rate, cpu_s in ((60_000, 15.0), (50_000, 20.0), (40_000, 25.0))
    ]
    figures = told(runs)
    assert (figures["messages_per_s"], figures["lowest"], figures["highest"]) == (
        50_000,
        40_000,
        60_000,
    )
    assert figures["cores_busy"] == 1.25  # 50 000 a second, 25 µs each
