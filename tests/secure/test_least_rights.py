"""The whole way from a message to a screen, each part with the rights of docs/CONNECTING.md."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from redis.exceptions import NoPermissionError

from contextgauge.errors import ConfigError
from streams.edge.redis.access import RedisAccess
from streams.edge.redis.view_store import RedisViews
from streams.ports import ViewPosition
from tests.commands import Command
from tests.contract.stores import one_view
from tests.patience import PATIENCE_S, pause_s
from tests.secure.documented import kafka_acls, redis_acl
from tests.secure.services import PASSWORD, Secured, component

EXIT_CONFIG = 2
COMPONENTS = {
    "creator",
    "publisher",
    "deriver",
    "projector",
    "controller",
    "operator",
    "analyst",
    "requester",
    "keeper",
    "exporter",
}


def _acls_of(user: str) -> list[list[str]]:
    return [words for words in kafka_acls() if f"User:{user}" in words]


def _sessions(command: Command, secured: Secured) -> set[str]:
    # A reader has no Kafka at all.
    done = command("sessions", "--json", **secured.redis_settings("reader"))
    assert done.returncode == 0, done.stderr
    return {view["session_id"] for view in json.loads(done.stdout)}


def _ended(worker: subprocess.Popen[str]) -> str:
    """Return what a worker said that stopped by itself for want of rights."""
    _, log = worker.communicate(timeout=PATIENCE_S)
    assert worker.returncode == EXIT_CONFIG, log
    assert PASSWORD not in log
    return log


@pytest.mark.extended
def test_every_component_does_its_work_and_a_worker_that_loses_its_rights_stops(
    granted: Secured, command: Command
) -> None:
    assert {words[words.index("--allow-principal") + 1] for words in kafka_acls()} == {
        f"User:{name}" for name in COMPONENTS
    }
    refused = command("topics", "create", **component(granted, "outsider"))
    assert refused.returncode == EXIT_CONFIG
    assert "TopicAuthorizationFailedError" in refused.stderr
    assert "docs/CONNECTING.md" in refused.stderr
    created = command("topics", "create", **component(granted, "creator"))
    assert created.returncode == 0, created.stderr

    lines = command("simulate", "--sample").stdout
    wanted = {
        json.loads(line)["session_id"]
        for line in command("replay", "--view", "-", stdin=lines).stdout.splitlines()
    }
    one = min(wanted)
    deriver = command.start("derive", **component(granted, "deriver"))
    projector = command.start("project", **component(granted, "projector", "projector"))
    broken = f'{lines}{{"type": "not the end\n'
    published = command("publish", "-", stdin=broken, **component(granted, "publisher"))
    assert published.returncode == 0, published.stderr
    sessions: set[str] = set()
    deadline = time.monotonic() + PATIENCE_S
    while (began_s := time.monotonic()) < deadline and not wanted <= sessions:
        sessions = _sessions(command, granted)
        time.sleep(pause_s(time.monotonic() - began_s))
    assert wanted <= sessions, (deriver.poll(), projector.poll())
    for arguments in (("status", one), ("events", one, "--readings")):
        done = command(*arguments, **granted.redis_settings("reader"))
        assert done.returncode == 0, done.stderr

    requester = component(granted, "requester", "reader")
    for words in (("compact", one), ("thresholds", "--agent", "a", "--automatic")):
        done = command(*words, **requester)
        assert done.returncode == 0, done.stderr
    done = command("why", one, **granted.redis_settings("reader"))
    assert done.returncode == 0, done.stderr

    for topic in ("messages", "records"):  # without any right to a group
        replayed = command("replay", "--topic", topic, **component(granted, "analyst"))
        assert (replayed.returncode, len(replayed.stdout) > 0) == (0, True), replayed.stderr
    _look_at_dead_letters(granted, command)
    _lose_rights(granted, command, deriver, projector)


def _look_at_dead_letters(granted: Secured, command: Command) -> None:
    """Find the one that was published, and ask for it to be sent again."""
    operator = component(granted, "operator")
    listed = command("dead", "list", "--json", **operator)
    deadline = time.monotonic() + PATIENCE_S
    while (began_s := time.monotonic()) < deadline and not listed.stdout.strip("[]\n "):
        listed = command("dead", "list", "--json", **operator)
        time.sleep(pause_s(time.monotonic() - began_s))
    assert listed.returncode == 0, listed.stderr
    assert "not_json" in listed.stdout, listed.stdout + listed.stderr
    again = command("dead", "redrive", "--all", "--yes", **operator)
    # It is no better now, so it stays; that it could be judged took the rights to read.
    assert (again.returncode, "fix the producer" in again.stdout) == (1, True), again.stderr


def _lose_rights(
    granted: Secured,
    command: Command,
    deriver: subprocess.Popen[str],
    projector: subprocess.Popen[str],
) -> None:
    """Take rights away from workers at work."""
    reading = next(words for words in _acls_of("projector") if "--topic" in words)
    granted.acl(["--remove", "--force", *reading[1:]])
    assert "TopicAuthorizationFailedError" in _ended(projector)
    granted.acl(reading)

    writing = next(
        words for words in _acls_of("deriver") if {"Write", "context.events"} <= {*words}
    )
    granted.acl(["--remove", "--force", *writing[1:]])
    lines = command("simulate", "--sample", "--seed", "7").stdout
    command("publish", "-", stdin=lines, **component(granted, "publisher"))
    assert "TopicAuthorizationFailedError" in _ended(deriver)
    granted.acl(writing)


RULES = """
[[targets]]
name = "nobody"
url = "http://127.0.0.1:1/"
give_up_after = "1s"

[[rules]]
name = "full"
when = "pressure"
at_percent = 1
targets = ["nobody"]
"""


@pytest.mark.extended
def test_control_needs_only_its_rights_and_reports_missing_ones(
    granted: Secured, command: Command, tmp_path: Path
) -> None:
    """Over TLS and SASL: it reads, looks up agents, and remembers what it could not send."""
    command("topics", "create", **component(granted, "creator"))
    rules, log = tmp_path / "alerts.toml", tmp_path / "log"
    rules.write_text(RULES)
    options = component(granted, "controller", "controller") | {"ALERTS_FILE": str(rules)}
    deriver = command.start("derive", **component(granted, "deriver"))
    worker = command.start_logging(log, "control", **options)
    lines = command("simulate", "--sample", "--recent", "--seed", "9").stdout
    command("publish", "-", stdin=lines, **component(granted, "publisher"))
    deadline = time.monotonic() + PATIENCE_S
    while "alert given up" not in log.read_text():
        assert worker.poll() is None, log.read_text()
        assert time.monotonic() < deadline, (deriver.poll(), log.read_text())
        time.sleep(0.2)
    keys = granted.redis().keys("cg:alerted:nobody:*")
    assert len(keys) >= 1
    assert "are not remembered" not in log.read_text()
    assert PASSWORD not in log.read_text()
    worker.terminate()
    assert worker.wait(PATIENCE_S) == 0, log.read_text()

    words = next(words for words in _acls_of("controller") if "--group" in words)
    granted.acl(["--remove", "--force", *words[1:]])
    try:
        refused = _ended(command.start("control", **options))
    finally:
        granted.acl(words)
    assert "GroupAuthorizationFailedError" in refused


@pytest.mark.extended
@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("--group", "GroupAuthorizationFailedError"),
        ("--transactional-id", "TransactionalIdAuthorizationFailed"),
    ],
)
def test_a_worker_reports_the_right_it_lacks(
    granted: Secured, command: Command, part: str, expected: str
) -> None:
    command("topics", "create", **component(granted, "creator"))
    words = next(words for words in _acls_of("deriver") if part in words)
    granted.acl(["--remove", "--force", *words[1:]])
    try:
        assert expected in _ended(command.start("derive", **component(granted, "deriver")))
    finally:
        granted.acl(words)


@pytest.mark.extended
def test_a_reader_of_views_cannot_write_and_no_user_reads_other_keys(granted: Secured) -> None:
    client = granted.redis()
    client.set("another:key", "1")
    client.execute_command("AUTH", "reader", PASSWORD)  # type: ignore[no-untyped-call]  # redis-py
    with pytest.raises(NoPermissionError):
        client.set("cg:active", "7")
    with pytest.raises(NoPermissionError):
        client.get("another:key")
    client.execute_command("AUTH", "projector", PASSWORD)  # type: ignore[no-untyped-call]  # redis-py
    with pytest.raises(NoPermissionError):
        client.get("another:key")
    with pytest.raises(NoPermissionError):
        client.flushall()


@pytest.mark.extended
async def test_a_command_that_redis_denies_raises_a_config_error(granted: Secured) -> None:
    """By itself, and where a script makes it."""
    url = f"redis://localhost:{granted.ports['redis_plain']}/0"
    store = RedisViews(url, access=RedisAccess(username="reader", password=PASSWORD))
    with pytest.raises(ConfigError, match=r"rights of /.*docs/CONNECTING\.md"):
        await store.begin_next(7, "a build")
    await store.stop()

    rules = [rule for rule in redis_acl("projector", "other", PASSWORD) if rule != "+set"]
    granted.redis().execute_command(  # type: ignore[no-untyped-call]  # redis-py
        "ACL", "SETUSER", "half", "reset", *rules
    )
    store = RedisViews(url, "other", RedisAccess(username="half", password=PASSWORD))
    with pytest.raises(ConfigError, match=r"rights of /.*docs/CONNECTING\.md"):
        await store.apply(
            1,
            0,
            expected=None,
            position=ViewPosition(0, 0, 1, caught_up=False),
            changes=one_view(b"a", b"view"),
        )
    await store.stop()
