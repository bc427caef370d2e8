"""What a rule raises: an alert, with whose session it is and an id that follows from its cause."""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from schemas.records import Json
from streams.core.alerts.rules import AlertKind, Rule

NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:contextgauge:alerts")

_SEPARATORS: Final = re.compile(r"[/\\]")


class Who(NamedTuple):
    """By what people know a session: its publisher's agent, and its folder's own name."""

    agent_id: str | None = None
    folder: str | None = None

    @classmethod
    def of(cls, agent_id: str | None, cwd: str | None) -> "Who":
        """Return who it is; of the folder's path only the last part, of whatever system."""
        parts = [] if cwd is None else [part for part in _SEPARATORS.split(cwd) if part.strip()]
        return cls(agent_id, parts[-1] if parts else None)

    def or_else(self, other: "Who") -> "Who":
        """Return it with the other's, where it has none."""
        return Who(
            other.agent_id if self.agent_id is None else self.agent_id,
            other.folder if self.folder is None else self.folder,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An event that a rule asks for.

    `id` follows from the rule and the record; for pressure from the rule, the epoch and the window,
    which are alerted on once, whichever of the readings comes to do it. `time_ms` is the event time
    of the record, of a stalled attempt's last sign; null where it has none. `facts` depend on the
    kind; they hold no text of a message but a failure's own `error`.
    """

    id: str
    rule: Rule
    record_id: str
    record_type: str
    session_id: str
    chain: str
    model: str | None
    who: Who
    time_ms: int | None
    facts: Mapping[str, Json]

    @property
    def kind(self) -> AlertKind:
        """The kind of its rule."""
        return self.rule.kind

    def of(self, who: Who) -> "Alert":
        """Return the alert with what else is known of whose session it is."""
        return replace(self, who=self.who.or_else(who))

    def is_fresh(self, now_ms: int, max_age_ms: int) -> bool:
        """Return whether it is young enough to be sent; one without a time never is."""
        return self.time_ms is not None and now_ms - self.time_ms <= max_age_ms


def alert_id(*parts: str) -> str:
    r"""Return a UUIDv5 of the parts; each comes with its length, so that none runs into another.

    A lone surrogate, which a session's id may hold, is written as `\uXXXX`, as in all output.
    """
    name = "".join(f"{len(part)}:{part}" for part in parts)
    digest = name.encode("utf-8", "backslashreplace").decode()
    return str(uuid.uuid5(NAMESPACE, digest))
