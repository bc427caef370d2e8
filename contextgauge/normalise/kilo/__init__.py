"""Kilo CLI: built on opencode, as which it stores sessions."""

from typing import Final

from contextgauge.normalise.opencode import stored_adapter
from contextgauge.normalise.tells import Compared

ADAPTERS: Final = (
    stored_adapter("Kilo CLI", "kilo", "7.6", Compared(3, 95), stored_at="kilo/", runtime="kilo"),
)
