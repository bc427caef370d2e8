"""Asks a server that takes messages over HTTP whether it is ready."""

import asyncio
from http.client import HTTPConnection, HTTPException
from typing import Final

from streams import codec
from streams.ports.inspection import IngestFacts

_ANSWER_S: Final = 3.0
_MOST_BYTES: Final = 64 * 1024

_ANY_HOST: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- not listened on
"""Addresses that stand for all of this machine's; a client needs one of them."""


class IngestProbe:
    """Asks the server of the settings: at the address at which it would listen."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = _ANY_HOST.get(host, host), port

    async def look(self) -> IngestFacts:
        """Return whether something answers, and why it is not ready."""
        return await asyncio.to_thread(self._look)

    def _look(self) -> IngestFacts:
        address = f"{f'[{self._host}]' if ':' in self._host else self._host}:{self._port}"
        if not self._port:  # any free one: only the server's log has it
            return IngestFacts(address, is_there=False)
        connection = HTTPConnection(self._host, self._port, timeout=_ANSWER_S)
        try:
            connection.request("GET", "/readyz", headers={"Host": "localhost"})
            body = connection.getresponse().read(_MOST_BYTES)
        except ConnectionRefusedError:
            return IngestFacts(address, is_there=False)
        except (OSError, HTTPException) as error:
            return IngestFacts(address, is_there=True, reasons=f"no answer ({error})")
        finally:
            connection.close()
        return IngestFacts(address, is_there=True, reasons=_reasons(body))


def _reasons(body: bytes) -> str | None:
    """Return why a server is not ready, by its answer; None where it is."""
    try:
        document = codec.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("worker") != "ingest":
        return "another program answers there"
    reasons = document.get("reasons")
    return "; ".join(map(str, reasons)) if isinstance(reasons, list) and reasons else None
