"""The local stack: starts, is found again, comes back on its ports, and names what is missing."""

import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from contextgauge.errors import StopError
from contextgauge.settings.local_stack import STATE_FILE, Running
from streams.edge.local_stack import processes
from streams.edge.local_stack.stack import PROJECT_FOLDER, LocalStack, MissingPartError


def _connects(address: str) -> bool:
    host, _, port = address.removeprefix("redis://").removesuffix("/0").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError:
        return False
    return True


def test_kafka_and_redis_answer(kafka: str, redis_url: str) -> None:
    assert _connects(kafka)
    assert _connects(redis_url)


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


def test_a_failed_jar_download_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "project"
    (root / "deploy" / "kafka").mkdir(parents=True)
    (root / "deploy" / "kafka" / "pom.xml").write_text("<project/>")
    _program(tmp_path, "java", "exit 0")
    _program(tmp_path, "mvn", "echo '[ERROR] Unknown host'; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(MissingPartError, match=r"Unknown host.*connect to the network"):
        LocalStack(tmp_path / "stack", root=root).start(["kafka"])


def test_an_outdated_java_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "project"
    shutil.copytree(PROJECT_FOLDER / "deploy", root / "deploy")
    (root / "deploy" / "kafka" / "libs").mkdir(exist_ok=True)
    shutil.copy(root / "deploy/kafka/pom.xml", root / "deploy/kafka/libs/resolved-from.xml")
    _program(tmp_path, "java", "echo 'java.lang.UnsupportedClassVersionError: x' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(MissingPartError, match="Java 17 or later"):
        LocalStack(tmp_path / "stack", root=root).start(["kafka"])


def test_without_the_source_folder_the_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingPartError, match="CONTEXTGAUGE_BOOTSTRAP_SERVERS"):
        LocalStack(tmp_path / "stack", root=tmp_path).start(["kafka"])


def test_the_last_line_of_a_service_that_fails_to_start_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, "redis-server", "echo 'Bad directive'; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    stack = LocalStack(tmp_path / "stack")
    with pytest.raises(StopError, match="redis did not start: Bad directive"):
        stack.start(["redis"])
    assert stack.services() == {}


def test_a_damaged_state_file_is_an_error_not_a_forgotten_process(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_text("{")
    with pytest.raises(StopError, match="damaged"):
        LocalStack(tmp_path).services()
