"""What a runtime's own settings say of its automatic compaction: the form that adapters give it.

An adapter reads its files and variables, and says by its runtime's formula where a compaction
begins. The status line imports this at every prompt, so it imports nothing that takes long.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from contextgauge.record_words import Runtime

Value: TypeAlias = bool | int | float

MOST_DIGITS: Final = 15
"""No size in settings has more."""


class Sourced(NamedTuple):
    """A setting's value, and the file or variable that it is from, as people write it."""

    value: Value
    source: str


class RuntimeSettings(NamedTuple):
    """The settings of one runtime in one folder; None: not set.

    `window` is the auto-compact window, `windows` the same by model, `percent` its percentage,
    `limit` the size at which the runtime compacts, `context_window` the window that it assumes,
    `largest_window` the most that any model has. `is_partial`: only what follows a prefix is
    counted against the limit. `has_variable`: `window` is of an environment variable, which comes
    before the settings by model.
    """

    runtime: Runtime
    enabled: Sourced | None = None
    window: Sourced | None = None
    windows: tuple[tuple[str, Sourced], ...] = ()
    percent: Sourced | None = None
    limit: Sourced | None = None
    context_window: Sourced | None = None
    largest_window: Sourced | None = None
    is_partial: bool = False
    has_variable: bool = False


class ExpectedPoint(NamedTuple):
    """What settings say: the size at which a compaction begins, None where it is switched off.

    `estimated`: it depends on what the settings do not say.
    """

    tokens: int | None
    source: str
    estimated: bool


class SettingsFile(NamedTuple):
    """A settings file as people write its path, or the environment, with what it has."""

    name: str
    content: Mapping[str, Any]


class Places(NamedTuple):
    """Where settings of a runtime may be, for sessions in one folder.

    `homes` are the runtime's, the main one first; `project` is its folder in the project, nearest
    to the session's, and never one of the homes. `of_machine` gives a folder of the machine's, with
    those of other platforms; `names` what is in a folder; `file` a JSON or TOML file by its folder
    and name. What cannot be read has nothing.
    """

    environment: Mapping[str, str]
    home: str
    homes: Sequence[str]
    project: str | None
    of_machine: Callable[[str, Mapping[str, str]], str]
    names: Callable[[str], Sequence[str]]
    file: Callable[[str, str], SettingsFile]


class SettingOf(NamedTuple):
    """A setting by its name in the runtime's settings file, and the value that it takes."""

    name: str
    value: int


class SettingsReading(NamedTuple):
    """How a runtime is set: `folder` is the name of its folder in a project.

    `point` says where a compaction begins, by settings, model, window and whether the window was
    reported or configured; None where the settings say nothing of that. `setting` is what makes a
    compaction begin at so many tokens; None where the runtime takes no such value.
    """

    folder: str
    read: Callable[[Places], RuntimeSettings]
    point: Callable[[RuntimeSettings, str | None, int | None, bool], ExpectedPoint | None]
    setting: Callable[[int], SettingOf | None]


def first(
    places: Iterable[SettingsFile], name: str, fits: Callable[[object], bool]
) -> Sourced | None:
    """Return the first fitting value of a field."""
    for place in places:
        value: Any = place.content.get(name)
        if fits(value):
            return Sourced(value, place.name)
    return None


def first_variable(
    places: Iterable[SettingsFile], name: str, read: Callable[[str], Value | None]
) -> Sourced | None:
    """Return the first value of a variable that can be read."""
    for place in places:
        text = place.content.get(name)
        value = None if text is None else read(str(text))
        if value is not None:
            return Sourced(value, f"{name} of {place.name}" if place.name else name)
    return None


def is_size(value: object) -> bool:
    """Return whether a field holds a number of tokens."""
    return type(value) is int and 0 < value < 10**MOST_DIGITS


def is_truth(value: object) -> bool:
    """Return whether a field is true or false."""
    return isinstance(value, bool)
