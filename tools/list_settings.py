"""Write `docs/SETTINGS.md`, the table of all settings, from the code.

    python tools/list_settings.py

A test fails when the document is stale.
"""

from pathlib import Path

from streams.settings import PREFIX, Settings

DOCUMENT = Path(__file__).parents[1] / "docs" / "SETTINGS.md"

_HEAD = """# Settings

Every setting is an environment variable. A variable that begins with `CONTEXTGAUGE_` and is none of
these is an error: a typing error would otherwise be a setting that silently does nothing. Made from
the code by `python tools/list_settings.py`.

| variable | default | what |
|---|---|---|
"""


def document() -> str:
    """Return the document's text."""
    rows = [
        f"| `{PREFIX}{name.upper()}` | {_default(field.get_default(call_default_factory=True))} "
        f"| {field.description} |\n"
        for name, field in Settings.model_fields.items()
    ]
    return _HEAD + "".join(rows)


def _default(value: object) -> str:
    if value is None or value in ("", {}):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{','.join(map(str, value))}`"
    return f"`{value}`"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
