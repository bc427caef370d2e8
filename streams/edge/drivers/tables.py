"""The drivers that a configuration names: tables such as `[drivers.codex]`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from ssl import SSLContext
from typing import Final
from urllib.parse import urlsplit

from contextgauge.errors import ConfigError
from contextgauge.ports import Clock
from contextgauge.settings.secrets import read_secret
from contextgauge.tls_files import TlsFiles, context_of
from contextgauge.user_folders import expanded
from streams.core.sections import Fault, Section, Table
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
    table = _Table(name, content)
    make = _READERS[name](table, clock)
    table.no_others()
    if faults := table.all_faults():
        raise ConfigError("\n".join(faults))
    return make()


class _Table(Section):
    """One driver's table, with what the drivers need of the environment and of files."""

    def __init__(self, name: str, content: Table) -> None:
        self._noted: list[Fault] = []
        super().__init__(content, (), self._noted)
        self._where, self._elsewhere = f"[drivers.{name}]: ", list[str]()

    def all_faults(self) -> list[str]:
        """Return a line for each fault."""
        of_keys = [f"{self._where}{fault.path[-1]} {fault.problem}" for fault in self._noted]
        return of_keys + self._elsewhere

    def seconds(self, key: str, default: float) -> float:
        """Return a number of seconds; the default where it is missing or wrong."""
        value = self.value(key)
        if value is None:
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 1 <= value <= _LONGEST_S:  # type: ignore[operator]  # a number
            self.fault(key, f"is {value!r}: give a number of seconds, 1 to {_LONGEST_S:g}")
            return default
        return float(value)  # type: ignore[arg-type]  # likewise

    def secret(self, key: str) -> str | None:
        """Return a secret from the variable or file that `key_env` or `key_file` names."""
        variable, file = self.text(f"{key}_env"), self.text(f"{key}_file")
        self.at_most_one(f"{key}_env", f"{key}_file")
        if file is not None:
            path = Path(expanded(file))
            return noted(self._elsewhere, lambda: read_secret(path, f"{self._where}{key}_file"))
        if variable is None:
            return None
        if not (value := os.environ.get(variable, "").strip()):
            self.fault(f"{key}_env", f"names {variable}, which is not set: set it")
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
            self.fault("url", f"is not valid: write {forms}")
        return url

    def authorities(self) -> SSLContext | None:
        """Return the context of `ca_file`; None: the system's authorities."""
        if (file := self.text("ca_file")) is None:
            return None
        files = TlsFiles(variables=self._where, ca_file=expanded(file))
        return noted(self._elsewhere, lambda: context_of(files))


def _codex(table: _Table, clock: Clock) -> Callable[[], Driver]:
    table.just_one("url", "command")
    url, command = table.url(("ws", "wss", "unix")), table.texts("command")
    if isinstance(table.value("command"), str):
        table.fault("command", 'is one string: write ["codex", "app-server"]')
    place = AppServerPlace(url, command, table.secret("token"), table.authorities())
    timeout_s = table.seconds("timeout_s", COMPACTION_S)
    return lambda: CodexDriver(place, clock, timeout_s)


def _opencode(table: _Table, clock: Clock) -> Callable[[], Driver]:
    url = table.url(("http", "https")) or OPENCODE_URL
    model = table.text("model")
    if model is not None and not all(model.partition("/")):
        table.fault("model", "is not valid: write provider/model")
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
