"""Bodies of requests to the control plane: which are taken, and what is said of others."""

import pytest
from starlette.types import Message

from schemas.records import Record
from tests.serve.control_kit import JSON, Control


@pytest.fixture
async def control(records: list[Record]) -> Control:
    return await Control(records).create()


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("text/plain", b'{"urgent": true}'),
        ("application/x-www-form-urlencoded", b"urgent=true"),
        ("", b"{}"),
    ],
)
async def test_a_body_is_json_and_says_so(
    control: Control, content_type: str, content: bytes
) -> None:
    headers = {"content-type": content_type} if content_type else {}
    answer = await control.api.client.post(
        f"{control.path}/compact", content=content, headers=headers
    )
    assert answer.status_code == 415, answer.text
    assert await control.sent() == []


@pytest.mark.parametrize(
    ("content", "parameter", "message"),
    [
        (b"{", "body", "is not JSON"),
        (b'{"instructions": "\xff"}', "body", "is not JSON"),
        (b"[]", "body", "must be a JSON object"),
        (b'{"instructions": 5}', "instructions", "Input should be a valid string"),
        (b'{"urgent": "?"}', "urgent", "Input should be a valid boolean"),
        (b'{"other": 1}', "other", "Extra inputs are not permitted"),
    ],
)
async def test_a_wrong_body_is_refused(
    control: Control, content: bytes, parameter: str, message: str
) -> None:
    answer = await control.api.client.post(f"{control.path}/compact", content=content, headers=JSON)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    ((name, said),) = [(one["parameter"], one["message"]) for one in answer.json()["errors"]]
    assert name == parameter
    assert said.startswith(message)


async def test_a_body_is_looked_at_last(control: Control) -> None:
    answer = await control.api.client.post(
        f"{control.path}/compact?x=1", content=b"{", headers=JSON
    )
    assert [one["parameter"] for one in answer.json()["errors"]] == ["x"]


async def test_a_body_that_breaks_off_is_refused(control: Control) -> None:
    came: list[Message] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return came.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": f"{control.path}/compact",
        "raw_path": f"{control.path}/compact".encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
        "scheme": "http",
    }
    await control.api.app(scope, receive, send)
    assert sent[0]["status"] == 422
    assert control.api.reported == []


async def test_a_long_text_is_refused(control: Control) -> None:
    path = f"{control.path}/compact"
    assert (await control.ask("POST", path, {"instructions": "x" * 4_001})).status_code == 422
    assert (await control.ask("POST", path, {"instructions": "x" * 20_000})).status_code == 413
