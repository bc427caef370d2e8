"""Scaling: what is started for a number of processes, and what its figures say."""

from pathlib import Path

from bench.measure import Measured
from bench.scaling import PEER, figures_of, system
from bench.systems import OUR_NAME, Job


def test_one_process_is_the_command_without_the_option() -> None:
    job = Job("127.0.0.1:9092", "run", Path())
    assert system((OUR_NAME, 1)).command(job).arguments[-2:] == ["streams", "derive"]
    two = system((OUR_NAME, 2)).command(job)
    assert two.arguments[-3:] == ["derive", "--processes", "2"]


def test_the_peer_has_threads_in_one_process() -> None:
    two = system((PEER, 2))
    assert two.title == "Kafka Streams, 2 threads"
    assert "-Dbench.threads=2" in two.command(Job("127.0.0.1:9092", "run", Path())).arguments


def test_figures_are_medians_and_include_busy_cores() -> None:
    runs = [
        Measured("contextgauge", rate, cpu_s, 5.0, 300.0, 1.0, 0.5)
        for rate, cpu_s in ((60_000, 15.0), (50_000, 20.0), (40_000, 25.0))
    ]
    figures = figures_of(runs)
    assert (figures["messages_per_s"], figures["lowest"], figures["highest"]) == (
        50_000,
        40_000,
        60_000,
    )
    assert figures["cores_busy"] == 1.25  # 50 000 a second, 25 µs each
