"""Connections that prove again who the client is before its SASL session ends (KIP-368).

A broker with `connections.max.reauth.ms` (managed ones have it, and tokens that expire) says how
long a proof holds, and closes the connection at the first request after that. aiokafka does not
look at it: each client would lose its connections once in a session. Here the next request waits
for the same exchange as at the beginning, on the same connection, and nothing is closed:

    request ──▶ due? ──no──▶ sent
                 └──yes──▶ handshake, authentication ──▶ sent, with what came meanwhile

Importing this module puts the class in the place of aiokafka's own, for all of its clients.
"""

import asyncio
import math
from typing import Any, Final

from aiokafka import conn
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.protocol.admin import SaslAuthenticateRequest
from aiokafka.protocol.api import Request

_RENEWED_AT: Final = 0.85
"""Of a session: the share after which Kafka's own clients begin to renew it."""

_LEAST_S: Final = 1.1
"""A broker takes a renewal for an error that comes within a second of the one before."""


class SessionConnection(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka is not typed
    """A connection whose session is renewed by the first request that comes late in it."""

    def __init__(self, *address: Any, **options: Any) -> None:  # noqa: ANN401 -- the base's
        super().__init__(*address, **options)
        self._renewed_at_s = math.inf
        self._renewal: asyncio.Task[None] | None = None

    def send(self, request: Request[Any], expect_response: bool = True) -> Any:  # noqa: ANN401, FBT001, FBT002 -- the base's
        """Send a request; return what its answer is awaited by."""
        if isinstance(request, SaslAuthenticateRequest):
            return self._authenticate(request)
        if self._loop.time() >= self._renewed_at_s:
            self._renewed_at_s = math.inf
            self._renewal = asyncio.create_task(self._renew())
        if self._renewal is None or self._renewal is asyncio.current_task():
            return super().send(request, expect_response)
        return self._send_after(self._renewal, request, expect_response)

    async def _authenticate(self, request: SaslAuthenticateRequest) -> Any:  # noqa: ANN401 -- the base's
        """Prove who the client is, or a step of it; note how long that holds."""
        response = await super().send(request)
        lifetime_ms = getattr(response, "session_lifetime_ms", 0)
        if lifetime_ms > 0:
            holds_s = max(lifetime_ms / 1_000 * _RENEWED_AT, _LEAST_S)
            self._renewed_at_s = self._loop.time() + holds_s
        return response

    async def _renew(self) -> None:
        """Prove it again. A connection on which that fails is closed, as at the beginning."""
        try:
            await self._do_sasl_handshake()
        except Exception as error:  # noqa: BLE001 -- whatever an authenticator raises; who waits gets it
            self.close(CloseReason.CONNECTION_BROKEN, error)
        finally:
            self._renewal = None

    async def _send_after(
        self,
        renewal: asyncio.Task[None],
        request: Request[Any],
        expect_response: bool,  # noqa: FBT001 -- the base's
    ) -> Any:  # noqa: ANN401 -- as above
        await asyncio.wait([renewal])
        return await self.send(request, expect_response)


conn.AIOKafkaConnection = SessionConnection
