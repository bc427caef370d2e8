"""Kilo CLI: built on opencode, whose tables its database has."""

from typing import Final

from contextgauge.normalise.opencode import database_adapter

ADAPTERS: Final = (database_adapter("Kilo CLI", "kilo", "7.6", runtime="kilo"),)
