"""What becomes of Redis's refusals, as a server says them that is scripted line by line."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from contextgauge.errors import ConfigError, RetryError, WrongServerError
from streams.edge.redis.access import NO_ACCESS
from streams.edge.redis.errors import TIMEOUT_S, replied
from streams.edge.redis.inspector import RedisInspector
from streams.ports.inspection import Failure

OTHER_SERVER = (
    "CLUSTERDOWN The cluster is down",
    "LOADING Redis is loading the dataset in memory",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "NOREPLICAS Not enough good replicas to write.",
    "READONLY You can't write against a read only replica.",
    "UNBLOCKED force unblock from blocking operation, instance state changed",
    "EXECABORT Transaction discarded because of: READONLY You can't write against a replica.",
    "READONLY You can't write against a read only replica. script: 0d7a, on @user_script:12.",
    "ERR Error running script (call to f_0d7a): @user_script:12: @user_script: 12: -READONLY You",
)
"""By Redis 7, and the last one by Redis 6."""

OF_A_CLUSTER = (
    "MOVED 3999 127.0.0.1:6381",
    "ASK 3999 127.0.0.1:6381",
    "CROSSSLOT Keys in request don't hash to the same slot",
)
FOR_NOW = (
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "MISCONF Errors writing to the AOF file: No space left on device",
    "EXECABORT Transaction discarded because of: MISCONF Errors writing to the AOF file",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "ERR Error running script (call to f_0d7a): @user_script:1: @user_script: 1: -OOM command",
)


class _Script:
    """A server; `reply` gives its reply to a command of a connection, both counted from 1."""

    def __init__(self, reply: Callable[[int, str], str | None]) -> None:
        self._reply = reply
        self.connections = 0
        self.commands: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        while line := await reader.readline():
            words = []
            for _ in range(int(line[1:])):
                size = int((await reader.readline())[1:])
                words.append((await reader.readexactly(size + 2))[:-2].decode())
            if words[0] == "CLIENT":
                writer.write(b"+OK\r\n")
                continue
            self.commands.append(words[0])
            reply = self._reply(number, words[0])
            if reply is None:
                break
            writer.write(f"{reply}\r\n".encode())
        writer.close()


@asynccontextmanager
async def _running(script: _Script) -> AsyncIterator[str]:
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"redis://127.0.0.1:{port}/0?protocol=2"


def _ids(replies: Sequence[str]) -> list[str]:
    return [f"{reply.split()[0]}-{number}" for number, reply in enumerate(replies)]


@pytest.mark.parametrize("reply", OTHER_SERVER, ids=_ids(OTHER_SERVER))
async def test_the_reply_of_another_server_connects_again(reply: str) -> None:
    """What the name leads to now is asked at once; where that says the same, the caller waits."""
    script = _Script(lambda number, _: f"-{reply}" if number in {1, 3, 4} else ":7")
    async with _running(script) as url:
        client = NO_ACCESS.client(url, TIMEOUT_S)
        assert await replied("asking", client.dbsize()) == 7
        assert script.connections == 2
        await client.connection_pool.disconnect()
        with pytest.raises(WrongServerError, match=r"Redis refuses for now, asking: [A-Z]+ "):
            await replied("asking", client.dbsize())
        assert script.connections == 4
        assert await replied("asking", client.dbsize()) == 7
        await client.aclose()


@pytest.mark.parametrize("reply", FOR_NOW, ids=_ids(FOR_NOW))
async def test_the_right_server_that_refuses_for_now_keeps_its_connection(reply: str) -> None:
    script = _Script(lambda _, __: f"-{reply}")
    async with _running(script) as url:
        client = NO_ACCESS.client(url, TIMEOUT_S)
        for _ in range(2):
            with pytest.raises(RetryError) as caught:
                await replied("asking", client.dbsize())
            assert not isinstance(caught.value, WrongServerError)
        assert script.connections == 1
        await client.aclose()


@pytest.mark.parametrize("reply", OF_A_CLUSTER, ids=_ids(OF_A_CLUSTER))
async def test_a_node_of_a_cluster_is_named_as_what_it_is(reply: str) -> None:
    async with _running(_Script(lambda _, __: f"-{reply}")) as url:
        client = NO_ACCESS.client(url, TIMEOUT_S)
        with pytest.raises(ConfigError, match=r"Redis Cluster.*CONTEXTGAUGE_REDIS_URL"):
            await replied("asking", client.dbsize())
        await client.aclose()


async def test_the_doctor_runs_no_command_outside_of_its_transaction() -> None:
    """The server goes away while commands are queued: on a new connection, they would run."""

    def reply(_: int, command: str) -> str | None:
        replies = {"INFO": "$0\r\n", "CONFIG": "*0", "PING": "+PONG", "TIME": "*2\r\n:1\r\n:1"}
        if command == "GET":
            return None if "MULTI" in script.commands else "$-1"
        return replies.get(command, "+QUEUED")

    script = _Script(reply)
    async with _running(script) as url:
        inspector = RedisInspector(url)
        facts = await inspector.look()
        assert not isinstance(facts, Failure)
        assert isinstance(facts.denied, Failure)
        queued = script.commands[script.commands.index("MULTI") :]
        assert queued[queued.index("GET") + 1 :] == ["DISCARD"]
        await inspector.stop()
