"""What the server of messages depends on, and its configuration."""

from dataclasses import dataclass

from contextgauge.delivery.outgoing import MessageFormat
from streams.ingest.intake import Intake
from streams.serve.api.serving import ServerContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingesting(ServerContext):
    """The dependencies and configuration of the server.

    `intake` takes messages, in the form `form`. A body has at most `body_limit_bytes`, those of all
    requests under way `waiting_bytes`.
    """

    intake: Intake
    form: MessageFormat
    body_limit_bytes: int
    waiting_bytes: int
