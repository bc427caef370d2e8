"""How tests of the core run: hypothesis never by the clock, which a busy machine would fail.

Tests of the compiled reader run only where it is compiled; elsewhere they are deselected.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

from streams.codec.compiled import read_usual
from tests.conftest import LONG

settings.register_profile(
    "core", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("long", settings.get_profile("core"), max_examples=5_000)
settings.load_profile("long" if LONG else "core")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests marked `compiled` in a pure run: `make check-compiled` runs them."""
    if read_usual is not None or os.environ.get("CHECK_COMPILED"):
        return
    compiled = [item for item in items if item.get_closest_marker("compiled") is not None]
    config.hook.pytest_deselected(items=compiled)
    items[:] = [item for item in items if item not in set(compiled)]
