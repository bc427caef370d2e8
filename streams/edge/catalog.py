"""Reads the bundled window catalog, `catalog.json` beside this module."""

from functools import cache
from importlib.resources import files

from streams.core.windows import Catalog
from streams.edge import codec


@cache
def bundled() -> Catalog:
    """Return the catalog that this version ships with."""
    text = files("streams.edge").joinpath("catalog.json").read_bytes()
    return Catalog.from_rows(codec.loads(text)["rows"])
