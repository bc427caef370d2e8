"""The options of `contextgauge serve`."""

import signal
import socket
import sys
import time
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.cli.serve import browser
from tests.commands import Command
from tests.patience import PATIENCE_S


def _opened(
    monkeypatch: pytest.MonkeyPatch, works: Callable[[str], bool], **environment: str
) -> list[str]:
    """Return what a browser was asked for on a Linux with these variables."""
    asked: list[str] = []

    def open_(address: str) -> bool:
        asked.append(address)
        return works(address)

    monkeypatch.setattr(webbrowser, "open", open_)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    browser.show_page("http://127.0.0.1:1/").join(PATIENCE_S)
    return asked


def test_the_page_is_opened_where_there_is_a_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = _opened(monkeypatch, lambda _: True, DISPLAY=":0")
    assert asked == ["http://127.0.0.1:1/"]
    assert capsys.readouterr().err == ""


def test_without_a_screen_the_address_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _opened(monkeypatch, lambda _: True) == []
    assert _opened(monkeypatch, lambda _: False, DISPLAY=":0") == ["http://127.0.0.1:1/"]
    assert capsys.readouterr().err.count("http://127.0.0.1:1/") == 2


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("0.0.0.0", "127.0.0.1"),  # noqa: S104 -- not listened on
        ("::", "[::1]"),
        ("127.0.0.2", "127.0.0.2"),
    ],
)
def test_the_address_is_one_that_a_browser_can_open(host: str, shown: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert browser.page_address(host, listener) == f"http://{shown}:{port}/"


@pytest.mark.extended
def test_an_address_that_is_not_available_is_reported(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = command("serve", "--port", port)
        assert done.returncode == 2
        assert (
            f"port {port} is taken: name another with --port or CONTEXTGAUGE_SERVE_PORT\n"
            in done.stderr
        )
    done = command("serve", "--host", "192.0.2.1")
    assert (done.returncode, "192.0.2.1" in done.stderr) == (2, True)
    assert command("serve", "--host", "").returncode == 2
    assert command("serve", "--port", "70000").returncode == 2


@pytest.mark.extended
def test_the_page_is_served_where_it_is_asked_for_and_opened(
    command: Command, tmp_path: Path
) -> None:
    opened, program = tmp_path / "opened", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    program.chmod(0o755)
    command.environment["BROWSER"] = f"{program} %s"
    server = command.start("serve", "--host", "127.0.0.1", "--port", "0", "--open")
    deadline = time.monotonic() + PATIENCE_S
    while not opened.exists():
        assert time.monotonic() < deadline
        assert server.poll() is None
        time.sleep(0.05)
    address = opened.read_text().strip()
    assert address.startswith("http://127.0.0.1:")
    assert ":8642/" not in address
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
        assert b"<html" in answer.read()
    server.send_signal(signal.SIGTERM)
    assert server.wait(PATIENCE_S) == 0


@pytest.mark.extended
def test_a_browser_that_stays_does_not_hinder_the_stop(command: Command, tmp_path: Path) -> None:
    opened, left = tmp_path / "opened", tmp_path / "left"
    browser_program = tmp_path / "browser"
    browser_program.write_text(
        f"#!/bin/sh\ntouch {opened}\nwhile test -e {opened}; do sleep 0.1; done\ntouch {left}\n"
    )
    browser_program.chmod(0o755)
    command.environment["BROWSER"] = f"{browser_program} %s"
    server = command.start("serve", "--host", "127.0.0.1", "--port", "0", "--open")
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not opened.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 0
        assert not left.exists()
    finally:
        opened.unlink(missing_ok=True)
