"""The local stack: starts, is found again, comes back on its ports, and names what is missing."""

import os
import socket
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from contextgauge.errors import StopError
from contextgauge.settings.local_stack import STATE_FILE, Running
from streams.edge.local_stack import processes
from streams.edge.local_stack.stack import QUICK_START, LocalStack, MissingPartError, jars_folder


def _parts(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("redis://").removesuffix("/0").rpartition(":")
    return host, int(port)


def _connects(address: str) -> bool:
    try:
        socket.create_connection(_parts(address), timeout=2).close()
    except OSError:
        return False
    return True


def test_kafka_and_redis_answer(kafka: str, redis_url: str) -> None:
    assert _connects(kafka)
    assert _connects(redis_url)


def test_only_the_user_reads_what_a_stack_keeps(
    own_stack: Callable[..., LocalStack], tmp_path: Path
) -> None:
    stack = own_stack("redis")
    with closing(socket.create_connection(_parts(stack.services()["redis"].address))) as client:
        client.sendall(b"SAVE\r\n")
        assert client.recv(64).startswith(b"+OK")
    assert stat.S_IMODE(stack.folder.stat().st_mode) == 0o700
    files = [path for path in (stack.folder / "redis").rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if path.stat().st_mode & 0o077] == []
    of_before = tmp_path / "of_before"
    of_before.mkdir(mode=0o755)
    LocalStack(of_before).prepare(["redis"])
    assert stat.S_IMODE(of_before.stat().st_mode) == 0o700


def test_a_killed_service_restarts_on_its_port(own_stack: Callable[..., LocalStack]) -> None:
    stack = own_stack("redis")
    before = stack.services()["redis"]
    stack.kill("redis")
    assert stack.services() == {}
    again = LocalStack(stack.folder).start(["redis"])["redis"]
    assert again.address == before.address
    for _ in range(5):  # a port may be held for a moment by what still ends of the killed one
        stack.kill("redis")
        assert stack.start(["redis"])["redis"].address == before.address
    assert again.process != before.process
    assert _connects(again.address)


def test_stop_ends_services_of_another_process(own_stack: Callable[..., LocalStack]) -> None:
    stack = own_stack("redis")
    service = stack.services()["redis"]
    assert LocalStack(stack.folder).stop() == ["redis"]
    assert not service.process.alive()
    assert not _connects(service.address)


def test_a_reused_pid_is_not_taken_for_the_service(tmp_path: Path) -> None:
    process = processes.start(["sleep", "60"], tmp_path / "log")
    try:
        assert process.alive()
        assert not Running(process.pid, "another moment").alive()
        processes.stop(Running(process.pid, "another moment"), 1.0)
        assert process.alive()
    finally:
        processes.stop(process, 1.0)
    assert not process.alive()


@pytest.mark.parametrize(
    ("services", "remedy"),
    [
        (["redis"], "no `redis-server`.*apt-get install redis-server"),
        (["kafka"], "no `java`.*Java 17"),
    ],
)
def test_a_missing_program_is_named_with_its_remedy(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    services: list[str],
    remedy: str,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPartError, match=remedy) as caught:
        LocalStack(tmp_path / "stack").start(services)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def _program(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without Kafka's jars; return where they go."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return jars_folder()


def test_jars_are_fetched_once_and_only_complete_ones_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path
) -> None:
    _program(tmp_path, "java", "exit 0")
    copy = 'echo >> "$0.runs"; for last; do :; done; mkdir -p "${last#*=}"; touch "${last#*=}/'
    _program(tmp_path, "mvn", f'test -e pom.xml && {copy}half.jar"; exit 1')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    stack = LocalStack(tmp_path / "stack")
    with pytest.raises(MissingPartError, match="could not fetch"):
        stack.prepare(["kafka"])
    assert list(empty_cache.parent.iterdir()) == []
    _program(tmp_path, "mvn", f'{copy}kafka_1.jar"')
    for _ in range(2):
        stack.prepare(["kafka"])
    assert [path.name for path in empty_cache.iterdir()] == ["kafka_1.jar"]
    assert (tmp_path / "mvn.runs").read_text() == "\n\n"


@pytest.mark.parametrize("is_brief", [True, False])
def test_only_a_broker_with_little_to_do_compiles_quickly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path, is_brief: bool
) -> None:
    empty_cache.mkdir(parents=True)
    _program(
        tmp_path, "java", f"echo $* >> {tmp_path}/commands; case $* in *format*) ;; *) exit 1; esac"
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(StopError, match="kafka did not start"):
        LocalStack(tmp_path / "stack", is_brief=is_brief).start(["kafka"])
    commands = (tmp_path / "commands").read_text().splitlines()
    assert [QUICK_START in command.split() for command in commands] == [is_brief, is_brief]


@pytest.mark.usefixtures("empty_cache")
def test_a_failed_jar_download_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path, "java", "exit 0")
    _program(tmp_path, "mvn", "echo '[ERROR] Unknown host'; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(MissingPartError, match=r"Unknown host.*connect to the network"):
        LocalStack(tmp_path / "stack").start(["kafka"])


@pytest.mark.usefixtures("empty_cache")
def test_a_missing_maven_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, "java", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPartError, match=r"no `mvn`.*once.*apt-get install maven"):
        LocalStack(tmp_path / "stack").start(["kafka"])


def test_an_outdated_java_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path
) -> None:
    empty_cache.mkdir(parents=True)
    _program(tmp_path, "java", "echo 'java.lang.UnsupportedClassVersionError: x' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(MissingPartError, match="Java 17 or later"):
        LocalStack(tmp_path / "stack").start(["kafka"])


def test_the_last_line_of_a_service_that_fails_to_start_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, "redis-server", "echo 'Bad directive'; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    stack = LocalStack(tmp_path / "stack")
    with pytest.raises(StopError, match="redis did not start: Bad directive"):
        stack.start(["redis"])
    assert stack.services() == {}


def test_a_damaged_state_file_is_an_error_not_a_forgotten_process(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_text("{")
    with pytest.raises(StopError, match="damaged"):
        LocalStack(tmp_path).services()
