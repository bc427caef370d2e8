"""Passwords that are changed under a worker that runs."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.edge.local_stack import processes
from streams.edge.redis.access import RedisAccess
from streams.edge.redis.view_store import RedisViews
from tests.commands import Command
from tests.conftest import require
from tests.patience import PATIENCE_S
from tests.secure.services import PASSWORD, Secured

EXIT_CONFIG = 2


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Secured]:
    """A Kafka of the test's own, which it may restart."""
    made: list[Secured] = []

    def make() -> str:
        made.append(Secured(tmp_path / "own"))
        return made[0].start_kafka()

    try:
        require(make)
        yield made[0]
    finally:
        for secured in made:
            secured.stop()


def _until(log: Path, words: str, times: int = 1) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while log.read_text().count(words) < times:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


@pytest.mark.extended
def test_a_worker_survives_a_broker_restart_and_stops_after_a_password_change(
    own: Secured, command: Command, tmp_path: Path
) -> None:
    settings = own.kafka_settings("sasl_ssl", "admin") | {"PARTITIONS": "1"}
    assert command("topics", "create", **settings).returncode == 0
    log = tmp_path / "log"
    worker = command.start_logging(log, "derive", **settings)
    lines = command("simulate", "--sample").stdout
    assert command("publish", "-", stdin=lines, **settings).returncode == 0
    _until(log, "partition is running")

    processes.stop(own.kafka, 0.0)
    _until(log, "trying again")
    assert worker.poll() is None
    own.restart_kafka()
    _until(log, "it works again")
    assert worker.poll() is None

    changed = "SCRAM-SHA-512=[password=another]"
    own.config(
        ["--alter", "--entity-type", "users", "--entity-name", "admin", "--add-config", changed]
    )
    processes.stop(own.kafka, 0.0)
    own.restart_kafka()
    assert worker.wait(PATIENCE_S) == EXIT_CONFIG, log.read_text()
    assert "the user admin is refused" in log.read_text()
    assert PASSWORD not in log.read_text()


async def test_the_redis_password_is_read_again_for_every_connection(
    secured_redis: Secured, tmp_path: Path
) -> None:
    admin = secured_redis.redis()
    admin.acl_setuser(
        "changing", enabled=True, passwords=["+old"], keys=["*"], categories=["+@all"]
    )
    secret = tmp_path / "password"
    secret.write_text("old\n")
    url = f"redis://localhost:{secured_redis.ports['redis_plain']}/0"
    store = RedisViews(url, access=RedisAccess(username="changing", password_file=secret))
    await store.start()
    admin.acl_setuser("changing", enabled=True, passwords=["+new", "-old"])
    secret.write_text("new\n")
    own = [client for client in admin.client_list() if client["user"] == "changing"]
    for client in own:
        admin.client_kill_filter(_id=client["id"])
    await store.start()
    assert await store.generations() is not None
    await store.stop()
    assert own
