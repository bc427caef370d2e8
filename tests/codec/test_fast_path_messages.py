"""What is made of a message said in short, compiled or not; and that the reader says just that."""

from typing import Any

import pytest

from contextgauge.normalise import normalise, normalise_usual
from contextgauge.normalise.signals import InputMessage
from contextgauge.normalise.usual import (
    USUAL_LINE,
    USUAL_RESPONSE,
    USUAL_RESPONSE_END,
    USUAL_USER,
    UsualMessage,
)
from streams import compiled
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
AT_2 = START_MS + 2_000
RESPONSE = assistant("msg_1", read=40, creation=5, fresh=6, output=7, uuid=UUID, model="model-1")

USER = UsualMessage(USUAL_USER, SESSION, UUID)
OF_RESPONSE = UsualMessage(
    USUAL_RESPONSE,
    SESSION,
    UUID,
    response_id="msg_1",
    model="model-1",
    input=6,
    creation=5,
    read=40,
    output=7,
)
OF_LINE: dict[str, Any] = {
    "moment": AT_2,
    "is_transcript": True,
    "version": "2.1.329",
    "folder": "/repo",
}

SAID: list[tuple[dict[str, Any], UsualMessage]] = [
    (user("go on", uuid=UUID, at=1), USER._replace(moment=START_MS + 1_000)),
    (
        {**user("go on", uuid=None, parent_tool_use_id="toolu_1"), "session_id": None},
        UsualMessage(USUAL_USER, parent_id="toolu_1"),
    ),
    (
        {**RESPONSE, "agent_id": "a1", "subagent_type": "Explore"},
        OF_RESPONSE._replace(agent_id="a1", subagent_type="Explore"),
    ),
    (
        {**message_delta(85), "uuid": UUID},
        UsualMessage(
            USUAL_RESPONSE_END, SESSION, UUID, input=2, creation=5_000, read=5_000, output=85
        ),
    ),
    (line(RESPONSE, at=2), OF_RESPONSE._replace(**OF_LINE)),
    (
        side(user("go on", uuid=UUID), "a1", at=2),
        USER._replace(**OF_LINE, agent_id="a1", is_sidechain=True),
    ),
    (
        line(any_message("progress", uuid=UUID), at=2),
        UsualMessage(USUAL_LINE, SESSION, UUID)._replace(**OF_LINE),
    ),
    (
        {**user("go on", uuid=UUID), "timestamp": "2026-11-01T14:00:00+02:00"},
        USER._replace(moment="2026-11-01T14:00:00+02:00"),
    ),
    (
        line(any_message("progress", uuid=UUID), at=2, version=None, cwd=None),
        UsualMessage(USUAL_LINE, SESSION, UUID, AT_2, is_transcript=True),
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
    read = compiled.messages().read(dump(message))
    assert type(read) is UsualMessage
    assert read == said
