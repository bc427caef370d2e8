"""The drivers that a configuration names: tables such as `[drivers.codex]`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from ssl import SSLContext
from typing import Any, Final
from urllib.parse import urlsplit

from contextgauge.errors import ConfigError
from contextgauge.ports import Clock
from contextgauge.settings.secrets import read_secret
from contextgauge.tls_files import TlsFiles, context_of
from contextgauge.user_folders import expanded
from streams.edge.drivers.app_server import AppServerPlace
from streams.edge.drivers.claude_code import ClaudeCodeDriver
from streams.edge.drivers.codex import CodexDriver
from streams.edge.drivers.opencode import OPENCODE_URL, OpencodeDriver, OpencodePlace
from streams.edge.drivers.results import COMPACTION_S
from streams.edge.files.toml_file import noted
from streams.ports.control import Driver

_LONGEST_S: Final = 3_600.0


def drivers_of(tables: Mapping[str, object], clock: Clock) -> dict[str, Driver]:
    """Return the drivers that the table `drivers` of a TOML document configures, by name.

    Connects to nothing. Raises ConfigError, with a line for each fault.
    """
    faults: list[str] = []
    drivers = {
        name: noted(faults, lambda: driver_of(name, content, clock))  # noqa: B023 -- called at once
        for name, content in tables.items()
    }
    if faults:
        raise ConfigError("\n".join(faults))
    return {name: driver for name, driver in drivers.items() if driver is not None}


def driver_of(name: str, content: object, clock: Clock) -> Driver:
    """Return the driver of one table. Raises ConfigError, with a line for each fault."""
    if name not in _READERS:
        raise ConfigError(f"[drivers.{name}] is unknown: use {', '.join(_READERS)}")
    if not isinstance(content, Mapping):
        raise ConfigError(f"drivers.{name} is not a table: write [drivers.{name}]")
    table = _Table(f"[drivers.{name}]", content)
    make = _READERS[name](table, clock)
    table.check()
    return make()


class _Table:
    """One table, which knows what was read of it, and all that is wrong with it."""

    def __init__(self, where: str, content: Mapping[str, object]) -> None:
        self.where, self._rest = where, dict(content)
        self._faults: list[str] = []

    def fault(self, problem: str) -> None:
        """Note what is wrong."""
        self._faults.append(f"{self.where}: {problem}")

    def text(self, key: str) -> str | None:
        value = self._rest.pop(key, None)
        if isinstance(value, str) and value.strip():
            return value
        if value is not None:
            self.fault(f"{key} is not a text")
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        value: Any = self._rest.pop(key, None)
        if value is None:
            return ()
        if not isinstance(value, list) or not value or not all(isinstance(e, str) for e in value):
            self.fault(f'{key} is not a list of texts: write ["codex", "app-server"]')
            return ()
        return tuple(value)

    def has(self, key: str) -> bool:
        """Return whether a key is there, right or wrong, and was not read yet."""
        return key in self._rest

    def seconds(self, key: str, default: float) -> float:
        value = self._rest.pop(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault(f"{key} is not a number of seconds")
            return default
        if not 1 <= value <= _LONGEST_S:
            self.fault(f"{key} is not between 1 and {_LONGEST_S:g} seconds")
        return float(value)

    def secret(self, key: str) -> str | None:
        """Return a secret from the variable or file that `key_env` or `key_file` names."""
        variable, file = self.text(f"{key}_env"), self.text(f"{key}_file")
        if variable is not None and file is not None:
            self.fault(f"use {key}_env or {key}_file, not both")
            return None
        if file is not None:
            path = Path(expanded(file))
            return noted(self._faults, lambda: read_secret(path, f"{self.where}: {key}_file"))
        if variable is None:
            return None
        if not (value := os.environ.get(variable, "").strip()):
            self.fault(f"{key}_env names {variable}, which is not set: set it")
        return value

    def url(self, schemes: tuple[str, ...]) -> str | None:
        """Return `url`, checked. The error does not show it: it may have a secret."""
        url = self.text("url")
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            good = parts.scheme in schemes and bool(parts.hostname or parts.scheme == "unix")
            good = good and parts.username is None
            _ = parts.port
        except ValueError:
            good = False
        if not good:
            forms = " or ".join(f"{scheme}://…" for scheme in schemes)
            self.fault(f"url is not valid: write {forms}")
        return url

    def authorities(self) -> SSLContext | None:
        """Return the context of `ca_file`; None: the system's authorities."""
        if (file := self.text("ca_file")) is None:
            return None
        files = TlsFiles(variables=f"{self.where}: ", ca_file=expanded(file))
        return noted(self._faults, lambda: context_of(files))

    def check(self) -> None:
        """Raise ConfigError for all that is wrong, and for each key that nothing reads."""
        for key in self._rest:
            self.fault(f"unknown key {key!r}: remove it")
        if self._faults:
            raise ConfigError("\n".join(self._faults))


def _codex(table: _Table, clock: Clock) -> Callable[[], Driver]:
    if table.has("url") == table.has("command"):
        table.fault("set either url, of a running app server, or command, to start one")
    url, command = table.url(("ws", "wss", "unix")), table.texts("command")
    place = AppServerPlace(url, command, table.secret("token"), table.authorities())
    timeout_s = table.seconds("timeout_s", COMPACTION_S)
    return lambda: CodexDriver(place, clock, timeout_s)


def _opencode(table: _Table, clock: Clock) -> Callable[[], Driver]:
    url = table.url(("http", "https")) or OPENCODE_URL
    model = table.text("model")
    if model is not None and not all(model.partition("/")):
        table.fault("model is not valid: write provider/model")
    place = OpencodePlace(
        url, table.text("username") or "opencode", table.secret("password"), table.authorities()
    )
    timeout_s = table.seconds("timeout_s", COMPACTION_S)
    return lambda: OpencodeDriver(place, clock, model, timeout_s)


def _claude_code(table: _Table, clock: Clock) -> Callable[[], Driver]:
    del table, clock
    return ClaudeCodeDriver


_READERS: Final[Mapping[str, Callable[[_Table, Clock], Callable[[], Driver]]]] = {
    "codex": _codex,
    "opencode": _opencode,
    "claude-code": _claude_code,
}
