"""What a failed call says, and what it asks for; names of summarisers; missing SDKs."""

import sys
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import pytest

from contextgauge.compaction.ports import SummaryError
from contextgauge.compaction.summarisers import (
    AnthropicModel,
    ChatModel,
    GeminiModel,
    ResponsesModel,
    summariser_named,
)
from contextgauge.compaction.summarisers.failures import (
    ProviderFailed,
    TooLarge,
    explain,
    retry_after_s,
)
from contextgauge.errors import ConfigError

NOW_MS = 1_700_000_000_000


class ApiStatus(Exception):  # noqa: N818 -- as an SDK's error, by its attributes
    """An error of an SDK."""

    def __init__(self, status: int, message: str = "", details: Any = None, **headers: str) -> None:
        super().__init__(message)
        self.status_code, self.details = status, details
        self.response = SimpleNamespace(
            headers={k.replace("_", "-"): v for k, v in headers.items()}
        )


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": formatdate(NOW_MS / 1_000 + 90, usegmt=True)}, 90.0),
        ({"retry-after": formatdate(NOW_MS / 1_000 - 90, usegmt=True)}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "1e99"}, 86_400.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
    ],
)
def test_providers_say_how_long_to_wait(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers, NOW_MS) == expected


def test_google_says_it_in_the_body() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    details = {"error": {"code": 429, "details": [{"@type": "x"}, info]}}
    assert explain(ApiStatus(429, details=details), NOW_MS).retry_after_s == 34.5


@pytest.mark.parametrize(
    ("status", "final"),
    [
        *((status, True) for status in (400, 401, 403, 404, 422)),
        *((status, False) for status in (408, 409, 429, 500, 503, 529)),
    ],
)
def test_some_statuses_may_be_mended_by_a_repetition(status: int, final: bool) -> None:
    error = explain(ApiStatus(status, "zebra"), NOW_MS)
    assert error.final is final
    assert str(error).startswith(f"HTTP {status}: ")
    assert "zebra" not in str(error)


@pytest.mark.parametrize(
    ("error", "is_providers"),
    [
        *((ApiStatus(each), True) for each in (401, 402, 403, 404, 408, 409, 429, 500, 503, 529)),
        *((ApiStatus(each), False) for each in (400, 413, 422)),
        (ApiStatus(400, "This model's maximum context length is 8192 tokens"), False),
        (ApiStatus(429, "code: insufficient_quota"), True),
        (ApiStatus(200, "overloaded"), True),
        (ConnectionResetError(), True),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), False),
    ],
    ids=repr,
)
def test_a_failure_is_the_providers_or_of_what_was_sent(
    error: Exception, is_providers: bool
) -> None:
    assert isinstance(explain(error, NOW_MS), ProviderFailed) is is_providers


def test_an_account_without_credit_is_final() -> None:
    assert explain(ApiStatus(429, "code: insufficient_quota"), NOW_MS).final


def test_an_error_in_an_answer_that_began_well_may_be_repeated() -> None:
    error = explain(ApiStatus(200, "zebra"), NOW_MS)
    assert (str(error), error.final) == ("HTTP 200: the provider failed", False)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (413, ""),
        (400, "This model's maximum context length is 8192 tokens"),
        (400, "prompt is too long: 208310 tokens > 200000 maximum"),
        (400, "The input token count (1200000) exceeds the maximum"),
        (400, "exceed_context_size_error"),
    ],
)
def test_a_request_too_large_is_known_as_one(status: int, message: str) -> None:
    assert isinstance(explain(ApiStatus(status, message), NOW_MS), TooLarge)


def test_an_error_of_ours_in_a_connections_place_is_found() -> None:
    ours, theirs = SummaryError("compressed", final=True), ConnectionError("an SDK's")
    theirs.__cause__ = ours
    assert explain(theirs, NOW_MS) is ours


def test_an_error_of_ours_stays_as_it_is() -> None:
    error = SummaryError("empty")
    assert explain(error, NOW_MS) is error


@pytest.mark.parametrize("error", [ConnectionResetError("zebra"), OSError("zebra")])
def test_a_connection_that_fails_may_be_repeated(error: Exception) -> None:
    explained = explain(error, NOW_MS)
    assert not explained.final
    assert str(explained) == f"the connection failed ({type(error).__name__})"


# Names


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("anthropic:claude", "anthropic/claude"),
        ("openai:gpt", "openai/gpt"),
        ("openai-responses:gpt", "openai/gpt"),
        ("gemini:flash", "gemini/flash"),
        ("compatible:org/model:7b", "compatible/org/model:7b"),
    ],
)
def test_a_summariser_has_a_name(name: str, called: str) -> None:
    url = "http://localhost:1/v1" if name.startswith("compatible") else None
    assert summariser_named(name, api_key="k", base_url=url).name == called


@pytest.mark.parametrize("name", ["", "claude", "anthropic:", "claude:anthropic"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match=r"PROVIDER:MODEL, with a provider of anthropic, openai"):
        summariser_named(name)


def test_a_compatible_server_needs_its_address() -> None:
    with pytest.raises(ConfigError, match="base_url"):
        summariser_named("compatible:model")


@pytest.mark.parametrize(
    ("model", "package", "extra"),
    [
        (AnthropicModel, "anthropic", "anthropic"),
        (ChatModel, "openai", "openai"),
        (ResponsesModel, "openai", "openai"),
        (GeminiModel, "google.genai", "gemini"),
    ],
)
def test_a_missing_sdk_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, model: Any, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=f"with the extra {extra}"):
        model("m", api_key="k")
