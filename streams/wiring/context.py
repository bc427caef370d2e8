"""What every long-running command gets from the process that it runs in."""

from dataclasses import dataclass, fields
from typing import Any

from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.flow.common.ports import WorkerPorts
from streams.settings import Settings


@dataclass(frozen=True, kw_only=True)
class WorkerContext(WorkerPorts):
    """The ports of a worker, with its settings and the metrics that it serves."""

    settings: Settings
    telemetry: PrometheusTelemetry

    @property
    def ports(self) -> dict[str, Any]:
        """The ports that every worker takes, by name."""
        return {each.name: getattr(self, each.name) for each in fields(WorkerPorts)}
