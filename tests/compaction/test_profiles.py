"""Profiles and hooks that cannot be used are errors that say what to do."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

import contextgauge.compaction
from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.events import Hooks
from contextgauge.compaction.history import History
from contextgauge.compaction.profiles import DEFAULT, Override
from contextgauge.errors import ConfigError
from tests.compaction.test_compactor import CALL, talk


def test_a_warning_after_the_compaction_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"warn_at 0.9 is above compact_at 0.8.*lower it too"):
        replace(DEFAULT, warn_at=0.9, compact_at=0.8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compact_at": "x"}, "compact_at is 'x', and must be float"),
        ({"keep_last": 2.5}, "keep_last is 2.5, and must be int"),
        ({"keep_last": True}, "keep_last is True, and must be int"),
        ({"clear_at_tokens": "x"}, r"clear_at_tokens is 'x', and must be int \| None"),
        ({"exclude_tools": "memory"}, r"exclude_tools is 'memory', and must be tuple\[str, ...\]"),
        ({"exclude_tools": (1,)}, r"exclude_tools is \(1,\), and must be tuple\[str, ...\]"),
        (
            {"summary_role": "boss"},
            r"summary_role is 'boss', and must be Literal\['system', 'user'",
        ),
        ({"windows": {"gpt": "x"}}, r"windows is .*, and must be .*Mapping\[str, int\]"),
        ({"windows": 5}, "windows is 5, and must be .*Mapping"),
    ],
)
def test_a_figure_of_a_wrong_type_is_named(changes: Mapping[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Compactor(overrides=[Override(changes)])


@pytest.mark.parametrize("name", ["confirm", "review"])
async def test_a_hook_that_is_not_async_is_named(name: str) -> None:
    compactor = Compactor(hooks=Hooks(**{name: lambda _value: True}))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"the hook '{name}' must be an async function"):
        await compactor.before_call(History(talk(79)), CALL)


def test_the_error_can_be_caught_by_the_packages_own_name() -> None:
    assert contextgauge.compaction.ConfigError is ConfigError
