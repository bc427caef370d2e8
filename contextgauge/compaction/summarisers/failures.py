"""Why a call failed, as a `SummaryError` in our own words: none of the provider's are repeated.

A provider's message may quote the conversation, and goes to logs and receipts. So it is only
looked at to tell a request that is too large from one that is wrong.

    SummaryError          of this conversation: others are summarised meanwhile
    ├── ProviderFailed    of the provider, whatever it is asked: after several, let it rest
    ├── TooLarge          the model's window is smaller than the request: send it in smaller parts
    └── OutOfTokens       the answer reached its limit before it was complete: allow more
"""

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

from contextgauge.compaction.ports import SummaryError
from contextgauge.records import Json

_LONGEST_WAIT_S: Final = 86_400.0
"""A day: what asks for more is mistaken, or means never."""

_TRANSIENT: Final = frozenset({408, 409, 425, 429})
"""With all of 500 and above: statuses that a repetition may mend."""

_OF_ACCOUNT: Final = frozenset({401, 402, 403, 404})
"""Statuses that do not depend on what is sent: of the key, the account, the model's name."""

_OWN_WORDS: Final = {
    400: "the provider refused the request as wrong: check the model's name and `extra`",
    401: "the provider refused the key: check {key}",
    402: "the account has no credit",
    403: "the key may not use this model",
    404: "the provider has no such model or address: check both",
    408: "the provider timed out",
    429: "the provider's rate limit is reached",
    503: "the provider is overloaded",
    529: "the provider is overloaded",
}

_TOO_LARGE: Final = (
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "context window",
    "prompt is too long",
    "input is too long",
    "input token count",
    "request_too_large",
    "too many tokens",
)
"""How OpenAI, Anthropic, Gemini, vLLM, llama.cpp and others say it."""

_TRANSPORTS: Final = frozenset({"aiohttp", "httpcore", "httpcore2", "httpx", "httpx2"})
"""Packages whose errors are of the connection."""

_UNANSWERED: Final = frozenset(
    {"APIConnectionError", "APIError", "APIResponseValidationError", "APITimeoutError"}
    | {"JSONDecodeError", "UnknownApiResponseError"}
)
"""Errors of the SDKs for connections that fail and answers that cannot be read."""


class ProviderFailed(SummaryError):  # noqa: N818 -- named for what happened
    """The provider gave no answer, and would give none to another conversation either."""


class TooLarge(SummaryError):  # noqa: N818 -- named for what happened
    """The request does not fit the model's window."""

    def __init__(self) -> None:
        super().__init__("the request is too large for the model", final=True)


class OutOfTokens(SummaryError):  # noqa: N818 -- named for what happened
    """The answer reached its limit before it was complete."""


def explain(error: Exception, now_ms: int, key: str = "the key") -> SummaryError:
    """Return the error of a call in our own words; `key` says which one to check."""
    if isinstance(error, SummaryError):
        return error
    if isinstance(error.__cause__, SummaryError):  # of our own, in a connection's place
        return error.__cause__
    status = _status(error)
    if status is None:
        return _without_status(error, key)
    wait_s = _wait_s(error, now_ms)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or _says_too_large(error, status):
        return TooLarge()
    words = f"HTTP {status}: {_OWN_WORDS.get(status, 'the provider failed').format(key=key)}"
    if "insufficient_quota" in str(error):
        return ProviderFailed(f"HTTP {status}: {_OWN_WORDS[402]}", final=True)
    transient = status in _TRANSIENT or not 400 <= status < 500  # noqa: PLR2004 -- the client's errors
    kind = ProviderFailed if transient or status in _OF_ACCOUNT else SummaryError
    return kind(words, retry_after_s=wait_s, final=not transient)


def _status(error: Exception) -> int | None:
    """Return the HTTP status, wherever the SDK has it."""
    for name in ("status_code", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
    return None


def _without_status(error: Exception, key: str) -> SummaryError:
    kind = type(error)
    root = kind.__module__.partition(".")[0]
    if isinstance(error, OSError) or root in _TRANSPORTS or kind.__name__ in _UNANSWERED:
        return ProviderFailed(f"the connection failed ({kind.__name__})")
    return SummaryError(
        f"the call could not be made ({kind.__name__}): check {key}, and the options", final=True
    )


def _says_too_large(error: Exception, status: int) -> bool:
    if status not in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}:
        return False
    message = str(error).lower()
    return any(each in message for each in _TOO_LARGE)


def _wait_s(error: Exception, now_ms: int) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    wait_s = retry_after_s(headers, now_ms) if isinstance(headers, Mapping) else None
    return _google_delay_s(getattr(error, "details", None)) if wait_s is None else wait_s


def retry_after_s(headers: Mapping[str, str], now_ms: int) -> float | None:
    """Return how long a provider asks to wait: `retry-after` in seconds or as a date."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None or value is None:
        return seconds
    try:
        at_s = parsedate_to_datetime(value).timestamp()
    except ValueError:
        return None
    return _seconds(at_s - now_ms / 1_000)


def _google_delay_s(details: Json) -> float | None:
    """Return the delay of Google's `RetryInfo`: `{"retryDelay": "34s"}`, some objects deep."""
    if isinstance(details, dict):
        delay = details.get("retryDelay")
        if isinstance(delay, str):
            return _seconds(delay.removesuffix("s"))
        details = list(details.values())
    if isinstance(details, list):
        delays = (_google_delay_s(each) for each in details if isinstance(each, dict | list))
        return next((each for each in delays if each is not None), None)
    return None


def _seconds(value: str | float | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return None
    return min(max(seconds, 0.0), _LONGEST_WAIT_S) if math.isfinite(seconds) else None
