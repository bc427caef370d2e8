"""The service's file, TOML, and the summariser that it names: its key is in the environment."""

import os
from pathlib import Path
from typing import Final

from contextgauge.clock import SystemClock
from contextgauge.compaction.summarisers import ModelSummariser, summariser_named
from contextgauge.errors import ConfigError
from streams.core.control.check import ServicePlan, check_service, outside_needs
from streams.core.control.service import SummariserPlan
from streams.core.conversation.opt_in import KeptConversations
from streams.core.sections import Fault, Table
from streams.edge.control.kept_conversations import find_kept
from streams.edge.drivers.tables import drivers_of
from streams.edge.files.toml_file import noted, read_toml

EXTRACTIVE: Final = "extractive"

COMPACTION_SERVICE: Final = "the compaction service"
"""What the file is, in the words of errors."""
_KEY_NAME: Final = "summariser: key_env"


def read_service(path: Path) -> ServicePlan:
    """Return the plan of a file. Raises ConfigError, with a line for each fault."""
    return read_toml(path, COMPACTION_SERVICE, check_service)


def check_service_file(path: Path) -> tuple[ServicePlan, KeptConversations | None]:
    """Return the plan of a file and whose text it keeps; what it needs of this machine is there.

    Raises ConfigError, with a line for each fault, of the drivers and the summariser's key too.
    """
    faults: list[str] = []
    service = noted(faults, lambda: read_service(path))
    conversations = noted(faults, lambda: find_kept(path))
    needs = noted(faults, lambda: read_toml(path, COMPACTION_SERVICE, outside_needs))
    if needs is not None:
        plan = needs.summariser
        noted(faults, lambda: summariser_of(plan) if needs.is_sound else _check_key(plan))
        noted(faults, lambda: drivers_of(needs.drivers, SystemClock()))
    if service is None or faults:
        raise ConfigError("\n".join(dict.fromkeys("\n".join(faults).splitlines())))
    return service, conversations


def is_service_file(path: Path) -> bool:
    """Return whether a file is the compaction service's rather than one of alert rules."""
    tables = frozenset(("service", "summariser", "sessions", "drivers", "conversations"))

    def any_of(content: Table) -> tuple[bool, list[Fault]]:
        return bool(tables & set(content)), []

    return read_toml(path, "alert rules or the compaction service", any_of)


def make_summariser(
    name: str, *, url: str | None, key_env: str | None, redact: bool = True, key_name: str
) -> ModelSummariser | None:
    """Return the summariser of a name; None: the extractive one, which needs no model.

    `key_name` is what names the variable with its key. Raises ConfigError.
    """
    if name == EXTRACTIVE:
        return None
    key = None if key_env is None else _key_of(key_env, key_name)
    return summariser_named(name, api_key=key, base_url=url, redact=redact)


def _key_of(key_env: str, key_name: str) -> str:
    key = os.environ.get(key_env)
    if not key:
        raise ConfigError(f"{key_name}: the environment has no {key_env}, or it is empty")
    return key


def summariser_of(plan: SummariserPlan) -> ModelSummariser | None:
    """Return the summariser of the file. Raises ConfigError."""
    return make_summariser(
        plan.name,
        url=plan.url,
        key_env=plan.key_env,
        redact=plan.redact,
        key_name=_KEY_NAME,
    )


def _check_key(plan: SummariserPlan) -> None:
    if plan.key_env is not None:
        _key_of(plan.key_env, _KEY_NAME)
