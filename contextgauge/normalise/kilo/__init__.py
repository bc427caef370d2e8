"""Kilo CLI: built on opencode, whose tables its database has."""

from typing import Final

from contextgauge.normalise.opencode import database_adapter
from contextgauge.normalise.tells import Compared

ADAPTERS: Final = (database_adapter("Kilo CLI", "kilo", "7.6", Compared(3, 95), runtime="kilo"),)
