"""The topics of a control worker, watched while it runs."""

import asyncio
from collections.abc import Mapping

from contextgauge.errors import RetryError
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.topic_watch import KnownTopic, watch_topics
from streams.ports import Log


async def watch_until_stopped(
    ports: WorkerPorts, log: Log, topics: Mapping[str, KnownTopic]
) -> None:
    """Run until stopped. Raises RetryError once a topic is another one.

    What is committed and what is in memory are of the former: a new worker starts over.
    """
    stopping = asyncio.create_task(ports.stop.wait())
    watching = asyncio.create_task(watch_topics(log, ports.clock, topics))
    try:
        await asyncio.wait({stopping, watching}, return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()
    except RetryError as error:
        raise RetryError(
            f"{error}. Create what is missing with `contextgauge topics create`, and start the "
            "worker again: it begins with recent records of the topics as they are then"
        ) from error
    finally:
        for task in (stopping, watching):
            task.cancel()
        await asyncio.gather(stopping, watching, return_exceptions=True)
