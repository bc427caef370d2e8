"""A settings file of a runtime, JSON or TOML: written with what was added, and as it was before.

Everything else in the file stays. A copy of the file as it was stands next to it until all that was
added is taken out again.
"""

import difflib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from contextgauge.errors import ConfigError

Settings: TypeAlias = MutableMapping[str, Any]

BACKUP_SUFFIX: Final = ".before-contextgauge"

_INDENT: Final = re.compile(rb'\n([ \t]+)"')


class SettingsDocument:
    """A settings file as it is now. A link stays one: its target is written.

    Raises ConfigError, which names the file, where it cannot be read or is not what its name says.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.backup = self.path.with_name(self.path.name + BACKUP_SUFFIX)
        self.text = _read(self.path)
        self.former_text = _read(self.backup)
        self._stored_former = self.former_text
        is_toml = path.suffix == ".toml"  # a link's target may have any name
        self._parse: Callable[[Path, bytes], Settings] = _toml if is_toml else _json
        self._dump: Callable[[bytes, Mapping[str, Any]], str] = (
            _toml_text if is_toml else _json_text
        )
        self._load: Callable[[str], Any] = tomllib.loads if is_toml else json.loads
        self.settings = self._parse(self.path, self.text or b"")

    def former(self) -> Settings | None:
        """Return the settings before anything was added, as the copy has them; None without one."""
        return None if self.former_text is None else self._parse(self.backup, self.former_text)

    def set_former(self, settings: Settings) -> None:
        """Change what the copy is to have, when the file is written."""
        if self.former_text is not None and settings != self.former():
            self.former_text = self._written(self.backup, self.former_text, settings)

    def with_settings(self, settings: Settings) -> bytes:
        """Return the file's text with other settings. Raises ConfigError for what has no form."""
        if _plain(settings) == _plain(self._parse(self.path, self.text or b"")):
            return self.text or b""
        return self._written(self.path, self.text or b"", settings)

    def _written(self, path: Path, text: bytes, settings: Settings) -> bytes:
        """Return a text with settings. Raises ConfigError where it does not have just these."""
        before, after = _plain(self._parse(path, text)), _plain(settings)
        try:
            written = self._dump(text, settings)
        except ValueError as error:  # 1e999 is JSON, `Infinity` is not
            raise ConfigError(f"{path}: a number is too large: nothing was changed") from error
        try:
            is_intended = _comparable(self._load(written)) == _comparable(after)
        except ValueError:
            is_intended = False
        if not is_intended:  # as of tables that are written with dots
            added = _additions(before, after)
            what = f"add this:\n{self._dump(b'', added)}" if added else "take out what was added"
            raise ConfigError(
                f"{path}: its form cannot be changed without harm: nothing was changed."
                f" By hand, {what}"
            )
        return written.encode("utf-8", "backslashreplace")  # half characters, as JSON has them

    def restored(self, settings: Settings) -> bytes | None:
        """Return the text without what was added: the former one, where nothing else has changed.

        None: there was no such file.
        """
        former = self.former()
        if former is None or _plain(settings) != _plain(former):
            return self.with_settings(settings)
        return self.former_text or None

    def refuse_if_changed(self) -> None:
        """Raise ConfigError where the file or its copy is not what was read."""
        if (_read(self.path), _read(self.backup)) != (self.text, self._stored_former):
            raise ConfigError(f"{self.path} was changed meanwhile: run this again")

    def write(self, text: bytes | None, *, keep_former: bool, has_former: bool) -> None:
        """Replace the file, or delete it. Raises ConfigError.

        `has_former`: what was added before is in it, so the copy is older than this file.
        `keep_former`: something that was added remains, and so does the copy. The copy of a file
        that was not there is empty; that of an empty file is an empty line.
        """
        former = self.former_text
        if not has_former:
            former = b"" if self.text is None else self.text or b"\n"
        if keep_former and former is not None and former != self._stored_former:
            _replace(self.backup, former, like=self.path)
        if text is None:
            self.path.unlink(missing_ok=True)
        elif text != self.text:
            _replace(self.path, text, like=self.path)
        if not keep_former:
            self.backup.unlink(missing_ok=True)

    def diff(self, text: bytes | None) -> list[str]:
        """Return the lines of the change to another text, as `diff -u` has them."""
        before, after = _lines(self.text), _lines(text)
        name = str(self.path)
        old, new = (name if each is not None else os.devnull for each in (self.text, text))
        return [line.rstrip("\n") for line in difflib.unified_diff(before, after, old, new, n=2)]


def _lines(text: bytes | None) -> list[str]:
    return (text or b"").decode("utf-8", "backslashreplace").splitlines(keepends=True)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def _json(path: Path, text: bytes) -> Settings:
    try:
        settings = json.loads(text.decode(), object_pairs_hook=_object) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid JSON ({error}): nothing was changed") from None
    if not isinstance(settings, dict):
        raise ConfigError(f"{path}: not a JSON object: nothing was changed")
    return settings


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises ValueError where a name would lose its first value."""
    settings = dict(pairs)
    if len(settings) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is in one object twice")
    return settings


def _toml(path: Path, text: bytes) -> Settings:
    import tomlkit  # noqa: PLC0415 -- for Codex alone
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 -- as above

    try:
        return tomlkit.parse(text.decode())
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML ({error}): nothing was changed") from None


def _plain(settings: Settings) -> Any:  # noqa: ANN401 -- any settings
    """Return settings without the form in which a file has them."""
    unwrap = getattr(settings, "unwrap", None)
    return settings if unwrap is None else unwrap()


def _comparable(settings: object) -> str:
    """Return settings as a text that is the same for the same settings, in any order."""
    return json.dumps(settings, sort_keys=True, default=str)


def _additions(before: object, after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are new or have another value."""
    added = {}
    for name, value in after.items():
        former = before.get(name) if isinstance(before, Mapping) else None
        if isinstance(former, Mapping) and isinstance(value, Mapping):
            inner = _additions(former, value)
            if inner:
                added[name] = inner
        elif value != former:
            added[name] = value
    return added


def _toml_text(_: bytes, settings: Mapping[str, Any]) -> str:
    import tomlkit  # noqa: PLC0415 -- as above

    return tomlkit.dumps(settings)


def _json_text(text: bytes, settings: Mapping[str, Any]) -> str:
    """Return settings as JSON, indented as a text is. Raises ValueError for what has no form."""
    indent = _INDENT.search(text)
    written = json.dumps(
        settings,
        indent=indent[1].decode() if indent is not None else 2,
        ensure_ascii=False,
        allow_nan=False,
    )
    return f"{written}\n"


def _replace(path: Path, text: bytes, *, like: Path) -> None:
    """Replace a file at once, with the permissions of `like`. Raises ConfigError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text)
            if like.exists():
                Path(name).chmod(like.stat().st_mode & 0o777)
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
