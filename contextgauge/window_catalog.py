"""Reads the bundled window catalog, `window_catalog.json` next to this module."""

import json
from functools import cache
from os import path

from contextgauge.windows import Catalog

_FILE = path.join(path.dirname(__file__), "window_catalog.json")


@cache
def bundled() -> Catalog:
    """Return the catalog that this version ships with."""
    # Plain `open`: the status line has no time for `importlib.resources` and the codec.
    with open(_FILE, "rb") as file:
        return Catalog.from_rows(json.load(file)["rows"])
