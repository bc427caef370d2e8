"""What is made of a message said in short, compiled or not; and that the reader says just that."""

from typing import Any

import pytest

from contextgauge.normalise import normalise, normalise_usual
from contextgauge.normalise.signals import InputMessage
from streams.compiled import read_usual
from tests.codec.fast_path_kit import dump
from tests.core.given import (
    SESSION,
    START_MS,
    any_message,
    assistant,
    line,
    message_delta,
    side,
    user,
)

UUID = "the-uuid"
AT_2 = (SESSION, UUID, START_MS + 2_000)
NO_RESPONSE = 7 * (None,)
RESPONSE = assistant("msg_1", read=40, creation=5, fresh=6, output=7, uuid=UUID, model="model-1")
OF_RESPONSE = ("msg_1", "model-1", 6, 5, 40, 7, None)

SAID: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    (
        user("go on", uuid=UUID, at=1),
        (1, SESSION, UUID, START_MS + 1_000, *3 * (None,), False, False, None, None, *NO_RESPONSE),
    ),
    (
        {**user("go on", uuid=None, parent_tool_use_id="toolu_1"), "session_id": None},
        (1, None, None, None, "toolu_1", None, None, False, False, None, None, *NO_RESPONSE),
    ),
    (
        {**RESPONSE, "agent_id": "a1", "subagent_type": "Explore"},
        (2, SESSION, UUID, None, None, "a1", "Explore", False, False, None, None, *OF_RESPONSE),
    ),
    (
        {**message_delta(85), "uuid": UUID},
        (
            3,
            SESSION,
            UUID,
            *4 * (None,),
            False,
            False,
            None,
            None,
            None,
            None,
            2,
            5_000,
            5_000,
            85,
            None,
        ),
    ),
    (
        line(RESPONSE, at=2),
        (
            2,
            SESSION,
            UUID,
            START_MS + 2_000,
            *3 * (None,),
            True,
            False,
            "2.1.329",
            "/repo",
            *OF_RESPONSE,
        ),
    ),
    (
        side(user("go on", uuid=UUID), "a1", at=2),
        (
            1,
            SESSION,
            UUID,
            START_MS + 2_000,
            None,
            "a1",
            None,
            True,
            True,
            "2.1.329",
            "/repo",
            *NO_RESPONSE,
        ),
    ),
    (
        line(any_message("progress", uuid=UUID), at=2),
        (
            0,
            SESSION,
            UUID,
            START_MS + 2_000,
            *3 * (None,),
            True,
            False,
            "2.1.329",
            "/repo",
            *NO_RESPONSE,
        ),
    ),
    (
        {**user("go on", uuid=UUID), "timestamp": "2026-11-01T14:00:00+02:00"},
        (
            1,
            SESSION,
            UUID,
            "2026-11-01T14:00:00+02:00",
            *3 * (None,),
            False,
            False,
            None,
            None,
            *NO_RESPONSE,
        ),
    ),
    (
        line(any_message("progress", uuid=UUID), at=2, version=None, cwd=None),
        (0, SESSION, UUID, START_MS + 2_000, *3 * (None,), True, False, None, None, *NO_RESPONSE),
    ),
]


@pytest.mark.parametrize("publisher_agent_id", [None, "agent-9"])
@pytest.mark.parametrize("received_ms", [None, 1_790_000_000_000])
@pytest.mark.parametrize("number", range(len(SAID)))
def test_the_expected_result_equals_a_full_reading(
    number: int, received_ms: int | None, publisher_agent_id: str | None
) -> None:
    message, said = SAID[number]
    given = InputMessage(dump(message), "hint", received_ms, "task-9", publisher_agent_id)
    assert normalise_usual(said, given) == normalise(message, given)


@pytest.mark.compiled
@pytest.mark.parametrize("number", range(len(SAID)))
def test_the_fast_path_returns_the_expected_result(number: int) -> None:
    message, said = SAID[number]
    assert read_usual is not None
    assert read_usual(dump(message)) == said
