"""The file of alert rules: TOML, with a line number for every fault, and secrets from elsewhere."""

import base64
import binascii
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from contextgauge.errors import ConfigError
from contextgauge.settings.secrets import read_secret
from contextgauge.tls_files import TlsFiles, context_of
from contextgauge.user_folders import expanded
from streams.core.alerts.check import check_plan, targets_of_content
from streams.core.alerts.rules import AlertPlan, Target
from streams.edge.files.toml_file import noted, read_toml

ALERT_RULES: Final = "alert rules"
"""What the file is, in the words of errors."""

_SECRET_PREFIX = "whsec_"  # noqa: S105 -- how a secret begins, and no secret


@dataclass(frozen=True, slots=True)
class Address:
    """Where a target is, and what proves to it that it is us. Nothing of it is ever shown.

    `context` is for authorities of the target's own; None: the system's.
    """

    url: str = field(repr=False)
    key: bytes | None = field(default=None, repr=False)
    context: ssl.SSLContext | None = field(default=None, repr=False)


def read_plan(path: Path) -> AlertPlan:
    """Return the plan of a file. Raises ConfigError, with a line for each fault."""
    return read_toml(path, ALERT_RULES, check_plan)


def check_plan_file(path: Path) -> AlertPlan:
    """Return the plan of a file, with the secrets of its targets at hand.

    Raises ConfigError, with a line for each fault of both.
    """
    faults: list[str] = []
    plan = noted(faults, lambda: read_plan(path))
    targets = noted(faults, lambda: read_toml(path, ALERT_RULES, targets_of_content))
    noted(faults, lambda: _addresses(targets or ()))
    if plan is None or faults:
        raise ConfigError("\n".join(dict.fromkeys(faults)))
    return plan


def addresses(plan: AlertPlan) -> dict[str, Address]:
    """Return where the targets are, by name. Raises ConfigError, with a line for each fault."""
    return _addresses(plan.targets)


def _addresses(targets: Sequence[Target]) -> dict[str, Address]:
    by_name: dict[str, Address] = {}
    faults: list[str] = []
    for target in targets:
        url = noted(faults, lambda: _url_of(target))  # noqa: B023 -- called at once
        key = noted(faults, lambda: _key_of(target))  # noqa: B023 -- likewise
        context = noted(faults, lambda: _authorities_of(target))  # noqa: B023 -- likewise
        by_name[target.name] = Address(url or "", key, context)
    if faults:
        raise ConfigError("\n".join(faults))
    return by_name


def _url_of(target: Target) -> str:
    url = _one(target, "url", target.url, target.url_env, target.url_file)
    return _checked(target, url or "")


def _key_of(target: Target) -> bytes | None:
    secret = _one(target, "secret", None, target.secret_env, target.secret_file)
    return None if secret is None else key_of(secret, f"target {target.name!r}: ")


def _authorities_of(target: Target) -> ssl.SSLContext | None:
    """Return the context of a target's own authorities; None: the system's. Raises ConfigError."""
    if target.ca_file is None:
        return None
    return context_of(
        TlsFiles(
            variables=f"target {target.name!r}: ",
            ca_file=expanded(target.ca_file),
        )
    )


def _one(
    target: Target, what: str, value: str | None, variable: str | None, file: str | None
) -> str | None:
    where = f"target {target.name!r}: {what}"
    if variable is not None:
        value = os.environ.get(variable, "").strip()
        if not value:
            raise ConfigError(f"{where}_env names {variable}, which is not set: set it")
    if file is not None:
        value = read_secret(Path(expanded(file)), f"{where}_file").strip()
    return value


def _checked(target: Target, url: str) -> str:
    """Return a URL that can be called. Raises ConfigError, which does not show it."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        good = False
    if not good:
        raise ConfigError(
            f"target {target.name!r}: its url is not a valid webhook address: "
            "write https://host/path, or http://"
        )
    return url


def key_of(secret: str, where: str = "") -> bytes:
    """Return a secret's bytes: of the Base64 behind `whsec_`, else of the text itself.

    Raises ConfigError.
    """
    try:
        if secret.startswith(_SECRET_PREFIX):
            key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
        else:
            key = secret.encode()
    except (binascii.Error, ValueError):
        raise ConfigError(
            f"{where}a secret that begins with {_SECRET_PREFIX} goes on in Base64, and this one "
            "does not"
        ) from None
    if not key:
        raise ConfigError(
            f"{where}a secret is empty, which proves nothing: write one, or name none"
        )
    return key
