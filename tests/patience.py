"""How long a test waits for what must come."""

from typing import Final

PATIENCE_S: Final = 90
"""A test that waits for longer has failed; no other waits so long, however slow the machine is."""
