"""What a runtime's own settings say of the next automatic compaction, and how records have them.

Settings are read where a session runs (`streams/edge/files/runtime_settings.py`); where each
runtime has them and what they mean is in its adapter. The status line imports this at every prompt,
so it imports nothing that takes long.
"""

from collections.abc import Mapping
from typing import Any, Final

from contextgauge.runtime_settings import ExpectedPoint, RuntimeSettings, Sourced


def expected(
    settings: RuntimeSettings, model: str | None, window: int | None, *, is_reported: bool
) -> ExpectedPoint | None:
    """Return what settings say of a chain of this model and window; None where they say nothing.

    `is_reported`: the runtime or the configuration of the reader named the window.
    """
    from contextgauge.normalise.runtimes import SETTINGS  # noqa: PLC0415 -- see the module

    if settings.enabled is not None and settings.enabled.value is False:
        return ExpectedPoint(None, settings.enabled.source, estimated=False)
    return SETTINGS[settings.runtime].point(settings, model, window, is_reported)


def has_any(settings: RuntimeSettings) -> bool:
    """Return whether anything is set."""
    return bool(settings.windows) or any(getattr(settings, name) is not None for name in _SOURCED)


def written(settings: RuntimeSettings | None) -> dict[str, object]:
    """Return settings as records have them (R33); empty where nothing is set."""
    if settings is None:
        return {}
    fields: dict[str, object] = {
        name: each._asdict() for name in _SOURCED if (each := getattr(settings, name)) is not None
    }
    if settings.windows:
        fields["windows"] = {model: each._asdict() for model, each in settings.windows}
    return fields | {name: True for name in _MARKS if getattr(settings, name)}


def read_settings(runtime: str | None, fields: Mapping[str, Any]) -> RuntimeSettings | None:
    """Read what `written` gave; None for a runtime without settings. What is wrong is not set."""
    from contextgauge.normalise.runtimes import SETTINGS  # noqa: PLC0415 -- as above

    if runtime is None or runtime not in SETTINGS:
        return None
    windows = fields.get("windows")
    by_model = windows.items() if isinstance(windows, dict) else ()
    known = [(model, _sourced(each)) for model, each in by_model]
    return RuntimeSettings(
        runtime,
        enabled=_sourced(fields.get("enabled")),
        window=_sourced(fields.get("window")),
        windows=tuple((model, own) for model, own in known if own is not None),
        percent=_sourced(fields.get("percent")),
        limit=_sourced(fields.get("limit")),
        context_window=_sourced(fields.get("context_window")),
        largest_window=_sourced(fields.get("largest_window")),
        is_partial=fields.get("is_partial") is True,
        has_variable=fields.get("has_variable") is True,
    )


def _sourced(field: object) -> Sourced | None:
    if not isinstance(field, dict):
        return None
    value, source = field.get("value"), field.get("source")
    if isinstance(value, int | float) and isinstance(source, str):
        return Sourced(value, source)
    return None


_MARKS: Final = ("is_partial", "has_variable")
_SOURCED: Final = (
    "enabled",
    "window",
    "percent",
    "limit",
    "context_window",
    "largest_window",
)
