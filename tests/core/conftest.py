"""How hypothesis runs here: never by the clock, which a busy machine would fail."""

from hypothesis import HealthCheck, settings

from tests.conftest import LONG

settings.register_profile(
    "core", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("long", settings.get_profile("core"), max_examples=5_000)
settings.load_profile("long" if LONG else "core")
