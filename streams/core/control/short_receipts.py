"""Receipts as the control plane keeps them: their figures, without long lists of message ids.

The whole receipt is in the log, in the boundary's message and in its record.
"""

from typing import Final

from schemas.records import Json
from streams.core.json_size import json_bytes

RECEIPT_BYTES: Final = 4_096
"""Of one receipt in a view, which holds those of up to 20 commands; about, as JSON."""


def short_receipt(receipt: dict[str, Json], most: int = RECEIPT_BYTES) -> dict[str, Json]:
    """Return a receipt within so many bytes: first without its ids, then with figures only."""
    if json_bytes(receipt) <= most:
        return receipt
    steps = receipt.get("steps")
    if isinstance(steps, list):
        steps = [{**each, "message_ids": []} if isinstance(each, dict) else each for each in steps]
    without_ids: dict[str, Json] = {**receipt, "archived_ids": [], "steps": steps}
    if json_bytes(without_ids) <= most:
        return without_ids
    return {
        name: value
        for name, value in receipt.items()
        if value is None or isinstance(value, (bool, int, float))
    }
