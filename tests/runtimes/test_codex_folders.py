"""Codex' folders of days: where a rollout may be, by the time in its thread's id."""

from contextgauge.normalise.codex.lines import day_folders


def test_a_rollout_is_in_the_folder_of_its_day_in_local_time() -> None:
    # Made at 2026-08-16T14:07:04Z.
    assert day_folders("01a00ae5-0000-7000-8000-000000000001") == [
        *("2026/08/16", "2026/08/15", "2026/08/17")
    ]


def test_an_id_without_a_time_names_no_folder() -> None:
    assert day_folders("0ea0e000-0000-4000-8000-000000000001") == []
