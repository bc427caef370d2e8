"""The settings that the status line reads by itself are those of the other commands."""

import pytest

from streams.core.derivation.rules_config import DEFAULT_WINDOW
from streams.core.until_compaction import Threshold
from streams.edge.files.plain_settings import StatusLineSettings, read_settings
from streams.settings import Settings


def test_names_and_defaults_are_those_of_the_project() -> None:
    settings, problems = read_settings({})
    assert problems == []
    for name, value in settings._asdict().items():
        assert value == Settings.model_fields[name].get_default(call_default_factory=True), name
    assert settings.default_window == DEFAULT_WINDOW


def test_settings_are_read_as_the_other_commands_read_them() -> None:
    settings, problems = read_settings(
        {
            "CONTEXTGAUGE_WINDOWS": '{"my-model": 128000}',
            "CONTEXTGAUGE_COMPACTION_THRESHOLDS": '{"a": 100000, "b": "80 %"}',
            "CONTEXTGAUGE_DEFAULT_WINDOW": "64000",
            "CONTEXTGAUGE_BATCH_MESSAGES": "7",
        }
    )
    assert problems == []
    assert settings == StatusLineSettings(
        windows={"my-model": 128_000},
        compaction_thresholds={"a": Threshold(tokens=100_000), "b": Threshold(percent=80.0)},
        default_window=64_000,
    )


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("WINDOWS", ("nonsense", "[]", '{"m": "1"}', '{"m": 0}', '{"": 5}', '{"m": true}')),
        ("COMPACTION_THRESHOLDS", ("nonsense", "[]", '{"m": "1"}', '{"m": 0}', '{"": 5}')),
        ("DEFAULT_WINDOW", ("0", "-1", "x", "1" * 20)),
    ],
)
def test_a_wrong_value_keeps_the_default_with_a_warning(name: str, wrong: tuple[str, ...]) -> None:
    for text in wrong:
        settings, problems = read_settings({f"CONTEXTGAUGE_{name}": text})
        assert settings == StatusLineSettings()
        assert [name in problem for problem in problems] == [True]
