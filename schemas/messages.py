"""Inbound messages and what publishers write alongside them, on `agent.messages`.

Defined in the library, which agents install on its own.
"""

from contextgauge.messages import *  # noqa: F403 -- all that is defined there
