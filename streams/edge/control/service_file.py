"""The service's file, TOML, and the summariser that it names: its key is in the environment."""

import os
from pathlib import Path
from typing import Final

from contextgauge.compaction.summarisers import ModelSummariser, summariser_named
from contextgauge.errors import ConfigError
from streams.core.control.check import ServicePlan, check_service, summariser_of_content
from streams.core.control.service import SummariserPlan
from streams.core.conversation.opt_in import KeptConversations
from streams.core.sections import Fault, Table
from streams.edge.control.conversations_file import find_kept
from streams.edge.files.toml_file import noted, read_toml

EXTRACTIVE: Final = "extractive"

COMPACTION_SERVICE: Final = "the compaction service"
"""What the file is, in the words of errors."""


def read_service(path: Path) -> ServicePlan:
    """Return the plan of a file. Raises ConfigError, with a line for each fault."""
    return read_toml(path, COMPACTION_SERVICE, check_service)


def check_service_file(path: Path) -> tuple[ServicePlan, KeptConversations | None]:
    """Return the plan of a file and whose text it keeps, with the summariser's key at hand.

    Raises ConfigError, with a line for each fault of all three.
    """
    faults: list[str] = []
    service = noted(faults, lambda: read_service(path))
    kept = noted(faults, lambda: find_kept(path))
    noted(faults, lambda: summariser_of(read_toml(path, COMPACTION_SERVICE, summariser_of_content)))
    if service is None or faults:
        raise ConfigError("\n".join(faults))
    return service, kept


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
    key = None
    if key_env is not None and not (key := os.environ.get(key_env)):
        raise ConfigError(f"{key_name}: the environment has no {key_env}, or it is empty")
    return summariser_named(name, api_key=key, base_url=url, redact=redact)


def summariser_of(plan: SummariserPlan) -> ModelSummariser | None:
    """Return the summariser of the file. Raises ConfigError."""
    return make_summariser(
        plan.name,
        url=plan.url,
        key_env=plan.key_env,
        redact=plan.redact,
        key_name="summariser: key_env",
    )
