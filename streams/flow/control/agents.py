"""Which agent runs a session, where its records told that long ago: the views know."""

from collections.abc import Callable

import structlog

from schemas.views import SessionView
from streams.core.errors import RetryError
from streams.edge import codec, view_codec
from streams.ports import ViewReader

logger = structlog.get_logger()


class AgentLookup:
    """Asks the session's view; None where there is no view, or Redis is away."""

    def __init__(self, reader: ViewReader, partition_of: Callable[[str, int], int]) -> None:
        self._reader, self._partition_of = reader, partition_of

    async def agent_of(self, session_id: str) -> str | None:
        """Return the agent that the publisher named for a session, if it is known."""
        try:
            generation = (await self._reader.generations()).active
            if generation is None:
                return None
            position = await self._reader.position(generation, 0)
            if position is None:
                return None
            partition = self._partition_of(session_id, position.partitions)
            key = codec.key_bytes(session_id)
            (document,) = await self._reader.views(generation, partition, [key])
        except RetryError as error:
            logger.warning("a session's agent cannot be looked up", error=str(error))
            return None
        if document is None:
            return None
        return view_codec.decode(SessionView, document).identity.publisher_agent_id
