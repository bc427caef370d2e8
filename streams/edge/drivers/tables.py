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
from streams.edge.drivers.app_server import AppServerPlace
from streams.edge.drivers.claude_code import ClaudeCodeDriver
from streams.edge.drivers.codex import CodexDriver
from streams.edge.drivers.opencode import OPENCODE_URL, OpencodeDriver, OpencodePlace
from streams.edge.drivers.results import COMPACTION_S
from streams.ports.control import Driver

_LONGEST_S: Final = 3_600.0


def drivers_of(tables: Mapping[str, object], clock: Clock) -> dict[str, Driver]:
    """Return the drivers that the table `drivers` of a TOML document configures, by name.

    Connects to nothing. Raises ConfigError, with a line for each fault.
    """
    drivers: dict[str, Driver] = {}
    faults = []
    for name, content in tables.items():
        try:
            drivers[name] = driver_of(name, content, clock)
        except ConfigError as error:
            faults.append(str(error))
    if faults:
        raise ConfigError("\n".join(faults))
    return drivers


def driver_of(name: str, content: object, clock: Clock) -> Driver:
    """Return the driver of one table. Raises ConfigError."""
    if name not in _READERS:
        raise ConfigError(f"[drivers.{name}] is unknown: use {', '.join(_READERS)}")
    if not isinstance(content, Mapping):
        raise ConfigError(f"drivers.{name} is not a table: write [drivers.{name}]")
    table = _Table(f"[drivers.{name}]", content)
    driver = _READERS[name](table, clock)
    table.check_all_read()
    return driver


class _Table:
    """One table, which knows what was read of it."""

    def __init__(self, where: str, content: Mapping[str, object]) -> None:
        self.where, self._rest = where, dict(content)

    def text(self, key: str) -> str | None:
        value = self._rest.pop(key, None)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise ConfigError(f"{self.where}: {key} is not a text")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value: Any = self._rest.pop(key, None)
        if value is None:
            return ()
        if not isinstance(value, list) or not value or not all(isinstance(e, str) for e in value):
            raise ConfigError(
                f'{self.where}: {key} is not a list of texts: write ["codex", "app-server"]'
            )
        return tuple(value)

    def seconds(self, key: str, default: float) -> float:
        value = self._rest.pop(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{self.where}: {key} is not a number of seconds")
        if not 1 <= value <= _LONGEST_S:
            raise ConfigError(f"{self.where}: {key} is not between 1 and {_LONGEST_S:g} seconds")
        return float(value)

    def secret(self, key: str) -> str | None:
        """Return a secret from the variable or file that `key_env` or `key_file` names."""
        variable, file = self.text(f"{key}_env"), self.text(f"{key}_file")
        if variable is not None and file is not None:
            raise ConfigError(f"{self.where}: use {key}_env or {key}_file, not both")
        if file is not None:
            return read_secret(Path(file).expanduser(), f"{self.where}: {key}_file")
        if variable is None:
            return None
        if not (value := os.environ.get(variable, "").strip()):
            raise ConfigError(f"{self.where}: {key}_env names {variable}, which is not set: set it")
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
            raise ConfigError(f"{self.where}: url is not valid: write {forms}")
        return url

    def authorities(self) -> SSLContext | None:
        """Return the context of `ca_file`; None: the system's authorities."""
        if (file := self.text("ca_file")) is None:
            return None
        where = f"{self.where}: "
        return context_of(TlsFiles(variables=where, ca_file=str(Path(file).expanduser())))

    def check_all_read(self) -> None:
        """Raise ConfigError where a key is left that nothing reads."""
        if self._rest:
            raise ConfigError(f"{self.where}: unknown key {next(iter(self._rest))!r}: remove it")


def _codex(table: _Table, clock: Clock) -> Driver:
    url, command = table.url(("ws", "wss", "unix")), table.texts("command")
    if (url is None) == (not command):
        raise ConfigError(
            f"{table.where}: set either url, of a running app server, or command, to start one"
        )
    place = AppServerPlace(url, command, table.secret("token"), table.authorities())
    return CodexDriver(place, clock, table.seconds("timeout_s", COMPACTION_S))


def _opencode(table: _Table, clock: Clock) -> Driver:
    url = table.url(("http", "https")) or OPENCODE_URL
    model = table.text("model")
    if model is not None and not all(model.partition("/")):
        raise ConfigError(f"{table.where}: model is not valid: write provider/model")
    place = OpencodePlace(
        url, table.text("username") or "opencode", table.secret("password"), table.authorities()
    )
    return OpencodeDriver(place, clock, model, table.seconds("timeout_s", COMPACTION_S))


def _claude_code(table: _Table, clock: Clock) -> Driver:
    del table, clock
    return ClaudeCodeDriver()


_READERS: Final[Mapping[str, Callable[[_Table, Clock], Driver]]] = {
    "codex": _codex,
    "opencode": _opencode,
    "claude-code": _claude_code,
}
