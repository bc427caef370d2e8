"""Addresses of the local stack that `contextgauge stack up` started in this project."""

import json
from pathlib import Path
from typing import Final

STACK_FOLDER: Final = Path(__file__).parents[2] / ".stack"
"""Where the local stack keeps data, logs and its state; ignored by git."""

STATE_FILE: Final = "stack.json"


def stack_address(service: str) -> str | None:
    """Return the address of a service of the stack, `kafka` or `redis`; None where none runs.

    A stack that was stopped removes its file. One that was killed leaves an address where nothing
    answers, which is reported as such when a client connects.
    """
    try:
        state = json.loads((STACK_FOLDER / STATE_FILE).read_bytes())
        address = state[service]["address"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return address if isinstance(address, str) else None
