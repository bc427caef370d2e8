"""What every long-running command gets from the process that it runs in."""

from dataclasses import dataclass

from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.flow.common.ports import WorkerPorts
from streams.settings import Settings


@dataclass(frozen=True, kw_only=True)
class WorkerContext(WorkerPorts):
    """The ports of a worker, with its settings and the metrics that it serves."""

    settings: Settings
    telemetry: PrometheusTelemetry
