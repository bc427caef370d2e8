"""A settings file of a runtime, JSON or TOML: written with what was added, and as it was before.

Everything else in the file stays. A copy of the file as it was stands next to it until all that was
added is taken out again.
"""

import difflib
import json
import os
import re
import tempfile
from collections.abc import Callable, MutableMapping
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
        parse = _toml if path.suffix == ".toml" else _json
        self._parse: Callable[[Path, bytes], Settings] = parse
        self.settings = parse(self.path, self.text or b"")

    def former(self) -> Settings:
        """Return the settings before anything was added; empty where there were none."""
        return self._parse(self.backup, self.former_text or b"")

    def with_settings(self, settings: Settings) -> bytes:
        """Return the file's text with other settings. Raises ConfigError for what has no form."""
        if _plain(settings) == _plain(self._parse(self.path, self.text or b"")):
            return self.text or b""
        return _written(self.path, self.text or b"", settings)

    def restored(self, settings: Settings) -> bytes | None:
        """Return the text without what was added: the former one, where nothing else has changed.

        None: there was no such file.
        """
        if self.former_text is not None and _plain(settings) == _plain(self.former()):
            return self.former_text
        if self.former_text is None and not settings:
            return None
        return self.with_settings(settings)

    def write(self, text: bytes | None, *, keep_former: bool, has_former: bool) -> None:
        """Replace the file, or delete it. Raises ConfigError.

        `has_former`: what was added before is in it, so the copy is older than this file.
        `keep_former`: something that was added remains, and so does the copy.
        """
        if keep_former and not has_former and self.text is not None:
            _replace(self.backup, self.text, like=self.path)
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


def _written(path: Path, text: bytes, settings: Settings) -> bytes:
    if path.suffix == ".toml":
        import tomlkit  # noqa: PLC0415 -- as above

        return tomlkit.dumps(settings).encode()
    indent = _INDENT.search(text)
    try:
        written = json.dumps(
            settings,
            indent=indent[1].decode() if indent is not None else 2,
            ensure_ascii=False,
            allow_nan=False,
        )
    except ValueError as error:  # 1e999 is JSON, `Infinity` is not
        raise ConfigError(f"{path}: a number is too large: nothing was changed") from error
    return f"{written}\n".encode("utf-8", "backslashreplace")  # half characters, as JSON has them


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
