"""`ingest` and `export` with a secured Kafka: each with its own rights, over TLS, and no others."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from streams.cli.exits import Exit
from streams.edge.telemetry.server import listening, port_of
from tests.commands import Command
from tests.flow.control.control_kit import until_so
from tests.ingest.kit import message
from tests.otlp_collector import collecting
from tests.patience import PATIENCE_S
from tests.secure.services import PASSWORD, Secured, component
from tests.serve.redis_kit import Served, until

pytestmark = pytest.mark.extended


@asynccontextmanager
async def _ingesting(
    command: Command, granted: Secured, user: str, folder: Path, **settings: str
) -> AsyncIterator[tuple[Served, str]]:
    """Run a server as a user of Kafka; yield it with a publisher's token."""
    made = command("token", "pat", "--publish")
    tokens = folder / "tokens"
    tokens.write_text(made.stdout)
    with listening("127.0.0.1", 0) as listener:
        port = port_of(listener)
    options = component(granted, user) | {"INGEST_TOKENS_FILE": str(tokens)} | settings
    served = Served(command, port, "ingest", **options)
    await served.start()
    yield served, next(line for line in made.stderr.splitlines() if line.startswith("cg_"))


async def _post(served: Served, token: str | None) -> int:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=served.url, timeout=PATIENCE_S) as client:
        usage = {"usage": {"input_tokens": 5}}
        body = message(1, "reported", type="assistant", message=usage)
        answer = await client.post("/v1/messages", json=body, headers=headers)
        return answer.status_code


async def test_ingest_publishes_with_a_publishers_rights_for_those_with_a_token(
    granted: Secured, command: Command, tmp_path: Path
) -> None:
    command("topics", "create", **component(granted, "creator"))
    async with _ingesting(command, granted, "publisher", tmp_path) as (served, token):
        await until(served.url, "/readyz", 200)
        assert await _post(served, None) == 401
        assert await _post(served, token[:-1] + "x") == 401
        assert await _post(served, token) == 202
        assert served.end(signal.SIGTERM) == Exit.DONE
    replayed = command("replay", "--topic", "messages", **component(granted, "analyst"))
    assert '"reported"' in replayed.stdout, replayed.stderr


async def test_ingest_without_a_right_or_a_trusted_broker_accepts_nothing_and_says_why(
    granted: Secured, command: Command, tmp_path: Path
) -> None:
    command("topics", "create", **component(granted, "creator"))
    other = {"KAFKA_CA_FILE": str(granted.other.file)}
    for user, settings, reason in (
        ("analyst", {}, "Kafka does not allow it"),
        ("publisher", other, "the server's certificate is signed by no authority"),
    ):
        async with _ingesting(command, granted, user, tmp_path, **settings) as (served, token):
            assert await _post(served, token) == 503
            async with httpx.AsyncClient(base_url=served.url) as client:
                assert (await client.get("/readyz")).status_code == 503
            assert served.process is not None
            served.process.terminate()
            _, log = served.process.communicate(timeout=PATIENCE_S)
        assert reason in log
        assert PASSWORD not in log


async def test_export_needs_only_its_rights(
    granted: Secured, command: Command, tmp_path: Path
) -> None:
    command("topics", "create", **component(granted, "creator"))
    deriver = command.start("derive", **component(granted, "deriver"))
    lines = command("simulate", "--sample", "--recent", "--seed", "11").stdout
    command("publish", "-", stdin=lines, **component(granted, "publisher"))
    async with collecting() as collector:
        command.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
        options = component(granted, "exporter", "reader")
        log = tmp_path / "log"
        worker = command.start_logging(log, "otel", "--since", "7d", **options)
        await until_so(lambda: bool(collector.events) or worker.poll() is not None)
        worker.terminate()
        assert await asyncio.to_thread(worker.wait, PATIENCE_S) == Exit.DONE, log.read_text()
    assert collector.events
    assert PASSWORD not in log.read_text()
    assert deriver.poll() is None
