"""Looks up whose session it is in its view, where recent records do not name it."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

import structlog

from contextgauge.errors import RetryError, VersionError
from contextgauge.normalise.runtimes import COMPACTING_THEMSELVES
from contextgauge.partitioner import partition_of
from schemas.records import MAIN_CHAIN, Runtime
from schemas.views import SessionView
from streams import codec
from streams.codec import view_codec
from streams.ports import AskedContexts, Clock, ViewReader

_REST_S: Final = 10.0
"""After a failed lookup: records wait for the answer, so not each of them asks."""

logger = structlog.get_logger()


class Owner(NamedTuple):
    """Whose session it is: the publisher's agent, and the whole path of its folder.

    `model` and `window` are those of its main chain; the window is null where it is only assumed.
    `is_known`: there is a view of the session. `asks`: its agent asks for the context that its
    model should see; looked up only of a runtime that compacts itself.
    """

    agent_id: str | None = None
    cwd: str | None = None
    model: str | None = None
    window: int | None = None
    is_known: bool = False
    runtime: Runtime | None = None
    asks: bool = False

    @property
    def lacks_driver(self) -> bool:
        """Whether what the service does would have no effect: the runtime compacts itself."""
        return self.runtime in COMPACTING_THEMSELVES and not self.asks


OwnerOf: TypeAlias = Callable[[str], Awaitable[Owner]]


async def no_owner(_session_id: str) -> Owner:
    """Return that nothing is known of a session: there are no views."""
    return Owner()


class AgentLookup:
    """Asks the session's view, and `asked` whether its agent asks for its context."""

    def __init__(
        self, reader: ViewReader, clock: Clock, asked: AskedContexts | None = None
    ) -> None:
        self._reader, self._clock, self._asked = reader, clock, asked
        self._not_before_s = clock.monotonic_s()

    async def owner_of(self, session_id: str) -> Owner:
        """Return the agent that the publisher named for a session, and the session's folder.

        Raises RetryError where it cannot be looked up now.
        """
        if self._clock.monotonic_s() < self._not_before_s:
            raise RetryError("the views could not be asked a moment ago")
        try:
            generation = (await self._reader.generations()).active
            position = None if generation is None else await self._reader.position(generation, 0)
            if generation is None or position is None:
                return Owner()
            partition = partition_of(session_id, position.partitions)
            key = codec.key_bytes(session_id)
            (document,) = await self._reader.views(generation, partition, [key])
            if document is None:
                return Owner()
            view = view_codec.decode(SessionView, document)
            asks = await self._asks(session_id, view.identity.runtime)
        except (RetryError, VersionError) as error:
            self._not_before_s = self._clock.monotonic_s() + _REST_S
            logger.warning("a session's agent cannot be looked up", error=str(error))
            raise RetryError(str(error)) from error
        identity, chain = view.identity, view.chains.get(MAIN_CHAIN)
        owner = Owner(
            identity.publisher_agent_id,
            identity.cwd,
            is_known=True,
            runtime=identity.runtime,
            asks=asks,
        )
        if chain is None:
            return owner
        window = None if chain.window_source == "default" else chain.window
        return owner._replace(model=chain.model, window=window)

    async def _asks(self, session_id: str, runtime: Runtime | None) -> bool:
        if self._asked is None or runtime not in COMPACTING_THEMSELVES:
            return False
        return await self._asked.asked(session_id) is not None
