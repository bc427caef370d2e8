"""Calls of webhooks, signed as specified by Standard Webhooks.

The headers are `webhook-id`, the alert's id, the same at every try; `webhook-timestamp`, seconds
since 1970 of this try; and, with a secret, `webhook-signature`: `v1,` and the Base64 of the HMAC
with SHA-256 of `id.timestamp.body`. A receiver that has any library for it needs no code of ours.
"""

import asyncio
import base64
import contextlib
import hashlib
import hmac
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from contextgauge import __version__
from streams.edge.alerts.rules_file import Address
from streams.edge.unreachable import why_unreachable
from streams.ports import Clock, WebhookResult

_FINAL = frozenset({400, 405, 410, 411, 413, 414, 415, 422, 431, 501})
"""Answers that the same call will get again; all others may be mended meanwhile: a proxy that is
restarted, a token that is renewed, a path that is about to be there."""
_LONGEST_ASKED_S = 3_600.0
"""The longest pause that a receiver can ask for."""
_REST_S = 1.0
"""How long the rest of an answer is waited for."""
_MOST_ANSWER_BYTES = 64 * 1024
"""Read of an answer, so that the connection can be reused; its content is ignored."""


def signature_of(key: bytes, alert_id: str, timestamp_s: int, body: bytes) -> str:
    """Return the value of `webhook-signature`."""
    signed = f"{alert_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


class HttpWebhook:
    """One receiver."""

    def __init__(self, address: Address, timeout_s: float, clock: Clock) -> None:
        self._address, self._clock = address, clock
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def call(self, alert_id: str, body: bytes) -> WebhookResult:
        """Send a body once."""
        timestamp_s = self._clock.now_ms() // 1_000
        headers = {
            "content-type": "application/json",
            "user-agent": f"contextgauge/{__version__}",
            "webhook-id": alert_id,
            "webhook-timestamp": str(timestamp_s),
        }
        if (key := self._address.key) is not None:
            headers["webhook-signature"] = signature_of(key, alert_id, timestamp_s, body)
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout)
        try:
            async with self._session.post(
                self._address.url,
                data=body,
                headers=headers,
                proxy=_proxy_for(self._address.url),
                allow_redirects=False,  # only the configured address may receive alerts
                ssl=self._address.context or True,
            ) as answer:
                judged = self._judged(answer.status, answer.headers.get("retry-after"))
                # The body does not matter, nor whether it arrives completely.
                with contextlib.suppress(aiohttp.ClientError, OSError, ValueError, TimeoutError):
                    async with asyncio.timeout(_REST_S):
                        await answer.content.read(_MOST_ANSWER_BYTES)
                return judged
        except TimeoutError:
            return WebhookResult("retry", "it did not answer in time")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # Not the error's text: it may show the address, which may be a secret.
            return WebhookResult("retry", f"it cannot be reached: {why_unreachable(error)}")

    async def stop(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _judged(self, status: int, retry_after: str | None) -> WebhookResult:
        reason = f"it answered {status}"
        if 200 <= status < 300:  # noqa: PLR2004 -- HTTP's own
            return WebhookResult("delivered", reason)
        if status in _FINAL:
            return WebhookResult("refused", reason)
        return WebhookResult("retry", reason, self._pause_s(retry_after) if retry_after else None)

    def _pause_s(self, retry_after: str) -> float | None:
        """Return the pause of a Retry-After: seconds, or the time until a date."""
        if retry_after.strip().isdecimal():
            seconds = float(retry_after)
        else:
            try:
                until = parsedate_to_datetime(retry_after)
                seconds = until.timestamp() - self._clock.now_ms() / 1_000
            except (ValueError, OverflowError):
                return None
        return min(max(seconds, 0.0), _LONGEST_ASKED_S)


def _proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address, but for those of `NO_PROXY`.

    aiohttp's `trust_env` would do this, and send the passwords of `~/.netrc` besides.
    """
    parts = urlsplit(url)
    return None if proxy_bypass(parts.netloc.rpartition("@")[2]) else getproxies().get(parts.scheme)
