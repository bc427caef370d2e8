"""Each provider's API, against a real HTTP server."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from contextgauge.compaction.messages import Message, ModelRequest, Text
from contextgauge.compaction.ports import SummaryAnswer, SummaryError, SummaryRequest
from contextgauge.compaction.summarisers import CallLimits, ModelSummariser
from contextgauge.records import Json
from tests.compaction.scripted_server import Reply, ScriptedServer, scripted_server
from tests.compaction.summary_kit import GOOD, HandClock, request_of
from tests.compaction.wire_replies import APIS, KEY, MODEL, Api, Said

pytestmark = [
    pytest.mark.service,  # a server on this machine, and the providers' SDKs
    # Of Google's SDK, which prefers aiohttp where it is installed.
    pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning"),
]


class Provider:
    """One provider's API on a server of the test's own."""

    def __init__(self, server: ScriptedServer, api: Api) -> None:
        self.server, self.api = server, api

    def said(self, said: Said) -> Reply:
        """Return an answer as the API gives it."""
        return Reply(self.api.whole(said))

    def summariser(self, clock: HandClock | None = None, **limits: float) -> ModelSummariser:
        figures = CallLimits(**{"call_s": 5, "total_s": 30, **limits})  # type: ignore[arg-type]
        model = self.api.connect(self.server.url)
        clock = clock or HandClock()
        return ModelSummariser(model, limits=figures, clock=clock, jitter=lambda: 1.0)

    async def summary(self, *replies: Reply, clock: HandClock | None = None) -> SummaryAnswer:
        """Return the summary where the server replies so, to one request after the other."""
        self.server.script(*replies)
        return await self.summariser(clock).summarise(request_of())

    async def reason(self, *replies: Reply, **limits: float) -> SummaryError:
        self.server.script(*replies)
        with pytest.raises(SummaryError) as caught:
            await self.summariser(None, attempts=1, **limits).summarise(request_of())
        return caught.value


@pytest_asyncio.fixture(params=APIS.values(), ids=APIS)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[Provider]:
    async with scripted_server() as server:
        yield Provider(server, request.param)


async def test_an_answer_is_the_summary_with_its_usage(provider: Provider) -> None:
    answer = await provider.summary(provider.said(Said(GOOD, reasoning="Hm.")))
    assert answer == SummaryAnswer(GOOD, f"{MODEL}-1", 123, 3, 40)


async def test_the_request_says_what_was_asked_for(provider: Provider) -> None:
    provider.server.script(provider.said(Said(GOOD)))
    await provider.summariser().summarise(request_of(max_tokens=1_234, temperature=0.25))
    received = provider.server.received[0]
    assert provider.api.path in received.path
    assert any(KEY in value for value in received.headers.values())
    limit: Json = received.body
    for name in provider.api.limit_field:
        assert isinstance(limit, dict)
        limit = limit[name]
    assert limit == 1_234
    place = received.body.get("generationConfig", received.body)
    assert place["temperature"] == 0.25
    assert "only summarise" in str(received.body)


async def test_no_temperature_is_sent_unless_asked_for(provider: Provider) -> None:
    await provider.summary(provider.said(Said(GOOD)))
    assert "temperature" not in str(provider.server.received[0].body)


async def test_a_rate_limit_is_waited_for_as_long_as_it_asks(provider: Provider) -> None:
    limited = Reply({"error": {"message": "slow"}}, 429, {"retry-after": "7"})
    clock = HandClock()
    answer = await provider.summary(limited, provider.said(Said(GOOD)), clock=clock)
    assert (answer.text, clock.slept) == (GOOD, [7.0])


@pytest.mark.extended
async def test_server_errors_are_repeated_with_growing_pauses(provider: Provider) -> None:
    broken = Reply({"error": {"message": "oops"}}, 500)
    clock = HandClock()
    answer = await provider.summary(broken, broken, provider.said(Said(GOOD)), clock=clock)
    assert (answer.text, clock.slept) == (GOOD, [1.0, 2.0])


@pytest.mark.extended
async def test_a_hang_ends_with_the_deadline_of_the_call(provider: Provider) -> None:
    hangs = replace(provider.said(Said(GOOD)), trouble="hang")
    error = await provider.reason(hangs, call_s=0.5)
    assert (str(error), error.final) == ("no answer within 0.5 s", False)


async def test_a_broken_connection_is_repeated(provider: Provider) -> None:
    cut = replace(provider.said(Said(GOOD)), trouble="cut")
    answer = await provider.summary(cut, provider.said(Said(GOOD)))
    assert (answer.text, len(provider.server.received)) == (GOOD, 2)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Said(), "empty"),
        (Said(reasoning="Let me think."), "no text"),
        (Said(stop="length", reasoning="Let me"), "before it wrote any text"),
        (Said(GOOD, stop="length"), "not complete after 4096 tokens"),
        (Said(stop="refusal"), "refused"),
        (Said(calls=2), "called tools"),
    ],
    ids=lambda value: "" if isinstance(value, Said) else value,
)
async def test_what_is_no_summary_is_refused(provider: Provider, said: Said, reason: str) -> None:
    error = await provider.reason(provider.said(said))
    assert reason in str(error)


async def test_what_a_repetition_cannot_mend_is_not_repeated(provider: Provider) -> None:
    provider.server.script(Reply({"error": {"message": "fix the parser"}}, 401))
    with pytest.raises(SummaryError, match="HTTP 401") as caught:
        await provider.summariser().summarise(request_of())
    assert caught.value.final
    assert len(provider.server.received) == 1


@pytest.mark.extended
async def test_no_word_of_the_conversation_is_in_a_reason(provider: Provider) -> None:
    quoting: Json = {"error": {"message": "no such thing: zebra", "type": "zebra", "code": "zebra"}}
    reasons: list[str] = []
    for reply in (
        Reply(quoting, 400),
        Reply(quoting, 429),
        Reply(quoting, 500),
        provider.said(Said("zebra")),
    ):
        conversation = (Message("user", (Text("the zebra"),), "m1"),)
        provider.server.script(reply)
        summariser = provider.summariser(attempts=1)
        request = SummaryRequest(conversation, ModelRequest(conversation), None, "the zebra", 1)
        with pytest.raises(SummaryError) as caught:
            await summariser.summarise(request)
        reasons.append(str(caught.value))
    assert "zebra" not in " ".join(reasons)
    assert all(reasons)


@pytest.mark.extended
async def test_a_request_too_large_is_sent_again_in_parts(provider: Provider) -> None:
    too_large = Reply({"error": {"message": "prompt is too long: 9 tokens > 8"}}, 400)
    provider.server.script(too_large, provider.said(Said(GOOD)))
    messages = [Message("user", (Text(f"{n} " * 900),), f"m{n}") for n in range(40)]
    request = replace(request_of(), messages=messages)
    answer = await provider.summariser().summarise(request)
    parts = len(provider.server.received) - 1
    assert parts > 1
    assert (answer.text, answer.input_tokens) == (GOOD, 123 * parts)


VARIABLES = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


async def test_without_a_key_the_reason_names_its_variable(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    model = provider.api.connect(None)
    summariser = ModelSummariser(model, clock=HandClock())
    with pytest.raises(SummaryError, match=f"check the key, {provider.api.variable}") as caught:
        await summariser.summarise(request_of())
    assert caught.value.final


async def test_the_environments_key_is_sent_to_no_other_server(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "meant-for-the-provider")
    provider.server.script(provider.said(Said(GOOD)))
    model = provider.api.kind(MODEL, base_url=provider.server.url)
    await ModelSummariser(model, clock=HandClock()).summarise(request_of())
    sent = provider.server.received[0].headers
    assert "meant-for-the-provider" not in str(sent)
    key = sent.get("x-api-key") or sent.get("x-goog-api-key") or sent.get("authorization")
    assert key in {"none", "Bearer none"}


async def test_no_answer_is_asked_for_compressed(provider: Provider) -> None:
    """The SDKs would unpack it whole, whatever it comes to."""
    await provider.summary(provider.said(Said(GOOD)))
    assert provider.server.received[0].headers["accept-encoding"] == "identity"


async def test_an_answer_that_is_compressed_all_the_same_is_refused_unread(
    provider: Provider,
) -> None:
    if provider.api.name == "gemini":
        pytest.skip("its SDK has no place to look at an answer before it is read")
    answer = replace(provider.said(Said(GOOD)), headers={"content-encoding": "gzip"})
    error = await provider.reason(answer)
    assert "compressed, which it was asked not to be" in str(error)
    assert error.final
