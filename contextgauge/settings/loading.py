"""Reads settings from environment variables that begin with `CONTEXTGAUGE_`.

Every value is checked when it is read, and an error names the variable and says what to do. A
misspelled variable is an error too: it would otherwise be a setting that silently does nothing.
"""

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, get_args

from pydantic import SecretStr, ValidationError

from contextgauge.errors import ConfigError
from contextgauge.settings.forms import PREFIX, SettingsPart
from contextgauge.settings.secrets import read_secret

Model = TypeVar("Model", bound=SettingsPart)


def load(
    model: type[Model],
    *,
    defaults: Mapping[str, str],
    inconsistencies: Callable[[Model], Iterator[str]],
    overrides: Mapping[str, str] = MappingProxyType({}),
) -> Model:
    """Read the settings of a model, secrets in files included.

    `defaults` are values by field name for variables that are not set, `overrides` win over the
    environment, `inconsistencies` yields a line for each setting that contradicts another. Raises
    ConfigError, one line per wrong variable.
    """
    environment = {name: os.environ.get(variable(name)) for name in model.model_fields}
    values = {**defaults, **{name: text for name, text in environment.items() if text is not None}}
    values |= _secrets_in_files(model)
    values.update(overrides)
    try:
        settings = model.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(model, error, overrides))) from None
    wrong = list(inconsistencies(settings))
    if wrong:
        raise ConfigError("\n".join(wrong))
    return settings


def variable(field: str) -> str:
    """Return the environment variable of a field."""
    return PREFIX + field.upper()


def misspelled(known: list[str], cutoff: float) -> Iterator[tuple[str, str | None]]:
    """Yield variables of our prefix that are not known, each with the known one it resembles."""
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            suffixes = [item.removeprefix(PREFIX) for item in known]
            near = difflib.get_close_matches(name.removeprefix(PREFIX), suffixes, 1, cutoff)
            yield name, PREFIX + near[0] if near else None


def secret_fields(model: type[SettingsPart]) -> tuple[str, ...]:
    """Return the settings that may hold a password: nothing ever shows their value.

    Where there is a setting of the same name and `_file`, the secret may come from a file instead.
    """
    return tuple(
        name
        for name, item in model.model_fields.items()
        if item.annotation is not None
        and SecretStr in (item.annotation, *get_args(item.annotation))
    )


def _secrets_in_files(model: type[SettingsPart]) -> dict[str, str]:
    """Return the secrets whose files are named. Raises ConfigError."""
    secrets, wrong = {}, []
    for name in secret_fields(model):
        file_variable = variable(f"{name}_file")
        path = os.environ.get(file_variable)
        if path is None or f"{name}_file" not in model.model_fields:
            continue
        if not path:
            wrong.append(f"{file_variable} is empty: name a file, or unset it")
        elif variable(name) in os.environ:
            wrong.append(f"{variable(name)} and {file_variable} are both set: keep one of them")
        else:
            try:
                secrets[name] = read_secret(Path(path), file_variable)
            except ConfigError as error:
                wrong.append(str(error))
    if wrong:
        raise ConfigError("\n".join(wrong))
    return secrets


def _explain(
    model: type[SettingsPart], error: ValidationError, overrides: Mapping[str, str]
) -> Iterator[str]:
    secrets = secret_fields(model)
    explained = set()
    for item in error.errors(include_url=False):
        field = str(item["loc"][0])
        if field in explained:  # what follows from the first error of a variable is no news
            continue
        explained.add(field)
        problem = item["msg"].removeprefix("Value error, ").removeprefix("Input ")
        if item["type"] == "string_pattern_mismatch":
            problem = "does not have the expected form"
        elif item["type"] == "string_too_short":
            problem = "is empty"
        named, remedy = variable(field), "Correct it, or unset it for the default."
        value = os.environ.get(named, "")
        if field in overrides:
            named, remedy, value = field, "Correct it.", str(overrides[field])
        # An address with a user in front may have a password there.
        hidden = field in secrets or "@" in value or not value
        shown = "" if hidden else f"={value[:80]!r}"
        yield f"{named}{shown} {problem}. {model.model_fields[field].description} {remedy}"
