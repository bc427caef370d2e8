"""How hypothesis runs here: never by the clock, which a busy machine would fail."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "core", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("core")
