"""The routes that read a session's text."""

import json
from http import HTTPStatus
from unittest.mock import ANY

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, RetryError
from streams.core.conversation.fold import ConversationFold
from streams.ports import Asked
from tests.doubles.asked_contexts import MemoryAskedContexts
from tests.serve.kit import Api, GrowingViews, api_over, sample_records
from tests.serve.text_kit import LINES, OneConversation, kept_conversation


@pytest.fixture
async def served() -> tuple[Api, OneConversation, str]:
    views = GrowingViews()
    records = sample_records()
    views.add(*records)
    session_id, other = sorted({each.data.session_id for each in records})[:2]
    reader = OneConversation(session_id, kept_conversation())
    return api_over(views, conversations=reader), reader, other


async def test_the_context_is_what_the_model_sees(
    served: tuple[Api, OneConversation, str],
) -> None:
    api, reader, _ = served
    answer = await api.client.get(f"/v1/sessions/{reader.session_id}/context")
    body = answer.json()
    assert (body["state"], body["active"], body["archived"]) == ("whole", 4, 1)
    assert (body["compactions"], body["position"]) == (1, 6)
    assert (body["behind"], body["reported_ms"]) == (None, None)
    reader.kept = reader.kept._replace(behind=7, reported_ms=1_000)
    for name in ("context", "history", "recall?query=checkout"):
        current = await api.json(f"/v1/sessions/{reader.session_id}/{name}")
        assert (current["behind"], current["reported_ms"]) == (7, 1_000)
    assert len(body["messages"]) == 3
    assert "checkout" not in answer.text


@pytest.mark.parametrize(
    "name", ["plain", "anthropic", "openai-chat", "openai-responses", "gemini"]
)
async def test_an_answer_in_parts_is_one_message_of_an_api(
    served: tuple[Api, OneConversation, str], name: str
) -> None:
    api, reader, _ = served
    path = f"/v1/sessions/{reader.session_id}/context?format={name}"
    messages = (await api.client.get(path)).json()["messages"]
    assert len(messages) == 3
    assert "context_compaction" not in json.dumps(messages)
    texts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    if name in {"plain", "anthropic"}:
        assert messages[2] == {"role": "assistant", "content": texts}
    if name == "plain":
        assert messages[0] == {"role": "user", "content": "So far."}


async def test_the_context_of_an_earlier_compaction_is_served(
    served: tuple[Api, OneConversation, str],
) -> None:
    api, reader, _ = served
    fold = ConversationFold(reader.kept)
    for offset, line in enumerate(LINES[1:3]):
        fold.add({**line, "uuid": f"later-{offset}"}, 10 + offset)
    reader.kept = fold.result
    path = f"/v1/sessions/{reader.session_id}/context"
    assert (await api.json(path))["compactions"] == 2
    for name in ("plain", "anthropic"):
        then = await api.json(f"{path}?at=1&format={name}")
        assert (then["compactions"], then["active"]) == (1, 1)
        (summary,) = then["messages"]
        assert "So far." in json.dumps(summary)
    unknown = await api.client.get(f"{path}?at=3")
    assert unknown.status_code == HTTPStatus.NOT_FOUND
    assert unknown.json()["type"].endswith(":no-compaction")


async def test_the_history_has_archived_messages_and_markers_by_pages(
    served: tuple[Api, OneConversation, str],
) -> None:
    api, reader, _ = served
    path = f"/v1/sessions/{reader.session_id}/history"
    first = (await api.client.get(f"{path}?limit=2")).json()
    shown = [(each["id"], each["active"], each["compaction"]) for each in first["messages"]]
    assert shown == [("1", False, None), ("s", True, 1)]
    rest = (await api.client.get(f"{path}?after={first['next']}")).json()
    assert [each["id"] for each in rest["messages"]] == ["2", "3", "4"]
    assert (first["first"], rest["first"], rest["next"]) == (0, 2, None)
    last = (await api.client.get(f"{path}?after=-2&limit=1")).json()
    assert ([each["id"] for each in last["messages"]], last["first"], last["next"]) == (["3"], 3, 4)
    whole = (await api.client.get(f"{path}?after=-100")).json()
    assert (len(whole["messages"]), whole["first"]) == (5, 0)


async def test_paging_skips_nothing_where_the_oldest_messages_are_dropped_meanwhile(
    served: tuple[Api, OneConversation, str],
) -> None:
    api, reader, _ = served
    path = f"/v1/sessions/{reader.session_id}/history"
    first = (await api.client.get(f"{path}?limit=3")).json()
    assert [each["id"] for each in first["messages"]] == ["1", "s", "2"]
    fold = ConversationFold()
    fold.begin_with(ConversationFold(reader.kept).base(), 5)  # "1" is no longer kept
    reader.kept = fold.result
    rest = (await api.client.get(f"{path}?after={first['next']}")).json()
    assert rest["dropped"] == 1
    assert [each["id"] for each in rest["messages"]] == ["3", "4"]
    again = (await api.client.get(f"{path}?limit=1")).json()
    assert [each["id"] for each in again["messages"]] == ["s"]
    assert (again["first"], again["next"]) == (1, 2)


async def test_recall_finds_what_left_the_context(
    served: tuple[Api, OneConversation, str],
) -> None:
    api, reader, _ = served
    path = f"/v1/sessions/{reader.session_id}/recall"
    assert "checkout" in (await api.client.get(f"{path}?query=checkout")).json()["answer"]
    assert "No archived" in (await api.client.get(f"{path}?file=a.py")).json()["answer"]


async def test_a_session_whose_text_is_not_kept_says_how_to_keep_it(
    served: tuple[Api, OneConversation, str],
) -> None:
    api, _, other = served
    answer = await api.client.get(f"/v1/sessions/{other}/context")
    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert answer.json()["type"].endswith(":no-text")
    assert "CONTEXTGAUGE_COMPACTION_FILE" in answer.json()["detail"]
    unknown = await api.client.get("/v1/sessions/nothing/context")
    assert unknown.json()["type"].endswith(":no-session")


@pytest.mark.parametrize("state", ["too_large", "without_text"])
async def test_a_conversation_that_cannot_be_shown_is_a_conflict(
    served: tuple[Api, OneConversation, str], state: str
) -> None:
    api, reader, _ = served
    reader.kept = reader.kept._replace(state=state)  # type: ignore[arg-type]  # one of the states
    answer = await api.client.get(f"/v1/sessions/{reader.session_id}/history")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert answer.json()["type"].endswith(state.replace("_", "-"))


async def test_an_incomplete_conversation_says_so(
    served: tuple[Api, OneConversation, str],
) -> None:
    api, reader, _ = served
    reader.kept = reader.kept._replace(state="incomplete")
    answer = await api.client.get(f"/v1/sessions/{reader.session_id}/context")
    assert answer.json()["state"] == "incomplete"


async def test_a_store_that_is_away_is_no_missing_text(
    served: tuple[Api, OneConversation, str],
) -> None:
    api, reader, _ = served
    reader.away = True
    answer = await api.client.get(f"/v1/sessions/{reader.session_id}/context")
    assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE


async def test_a_request_that_names_its_format_is_the_agents() -> None:
    views, asked = GrowingViews(), MemoryAskedContexts(SystemClock())
    views.add(*sample_records())
    session_id = sample_records()[0].data.session_id
    reader = OneConversation(session_id, kept_conversation())
    api = api_over(views, conversations=reader, asked=asked)
    await api.json(f"/v1/sessions/{session_id}/context")
    await api.json(f"/v1/sessions/{session_id}/context?at=1&format=anthropic")
    assert await asked.asked(session_id) is None
    for times in (1, 2):
        await api.json(f"/v1/sessions/{session_id}/context?format=anthropic")
        context = await asked.asked(session_id)
        assert context is not None
        assert (context.last_id, context.times) == ("4", times)
    reader.kept = ConversationFold().result  # nothing that could be given
    await api.json(f"/v1/sessions/{session_id}/context?format=plain")
    assert await asked.asked(session_id) == Asked("4", 2, ANY)


@pytest.mark.parametrize("error", [RetryError("away"), ConfigError("no right to write")])
async def test_an_agent_gets_its_context_where_that_cannot_be_noted(error: Exception) -> None:
    class Refusing(MemoryAskedContexts):
        async def note(self, session_id: str, last_id: str, compactions: int) -> None:  # noqa: ARG002 -- of any
            raise error

    views = GrowingViews()
    views.add(*sample_records())
    session_id = sample_records()[0].data.session_id
    reader = OneConversation(session_id, kept_conversation())
    api = api_over(views, conversations=reader, asked=Refusing(SystemClock()))
    body = await api.json(f"/v1/sessions/{session_id}/context?format=anthropic")
    assert len(body["messages"]) == 3
    assert [reported for _, reported in api.reported] == [error]
