"""Inbound messages and what publishers write alongside them, on `agent.messages`.

Defined in the library, which agents install on its own.
"""

from contextgauge.messages import (
    AGENT_ID_HEADER,
    MAX_DEPTH,
    MESSAGE_LIMIT_BYTES,
    NO_SESSION,
    OBSERVED_HEADER,
    OBSERVED_LIVE,
    REDRIVEN_HEADER,
    TASK_ID_HEADER,
    DeadLetter,
    DeadReason,
    Message,
)

__all__ = [
    "AGENT_ID_HEADER",
    "MAX_DEPTH",
    "MESSAGE_LIMIT_BYTES",
    "NO_SESSION",
    "OBSERVED_HEADER",
    "OBSERVED_LIVE",
    "REDRIVEN_HEADER",
    "TASK_ID_HEADER",
    "DeadLetter",
    "DeadReason",
    "Message",
]
