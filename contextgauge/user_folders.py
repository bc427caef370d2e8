"""Where this user's files are, by the XDG convention; without pathlib, for the status line."""

from os import environ, path

_PROJECT = path.dirname(path.dirname(path.abspath(__file__)))


def expanded(text: str) -> str:
    """Return a path whose `~` or `~USER` is that user's folder, where there is such a user."""
    return path.expanduser(text)


def state_folder(setting: str | None = None) -> str:
    """Return the folder of what must be remembered: the setting's, else the convention's."""
    if setting is not None:
        return path.abspath(expanded(setting))
    return _folder("XDG_STATE_HOME", "~/.local/state")


def cache_folder() -> str:
    """Return the folder of what can be fetched again."""
    return _folder("XDG_CACHE_HOME", "~/.cache")


def stack_folder() -> str:
    """Return where `contextgauge stack` keeps data, logs and its state.

    Of a checkout it is the checkout's own, so that several do not meet; else the user's.
    """
    if path.exists(path.join(_PROJECT, "pyproject.toml")):
        return path.join(_PROJECT, ".stack")
    return path.join(state_folder(environ.get("CONTEXTGAUGE_STATE_FOLDER")), "stack")


def _folder(variable: str, default: str) -> str:
    base = environ.get(variable, "")
    # The convention: a relative path is to be ignored.
    return path.join(base if path.isabs(base) else path.expanduser(default), "contextgauge")
