"""One HTML file that holds all it needs, and by its own policy can fetch nothing."""

import os
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final

from contextgauge import __version__
from contextgauge.errors import ConfigError
from streams.cli.pages.markup import Html, joined, tag
from streams.serve.api.page import FOLDER

BRAND: Final = Html(
    '<svg class="brand" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">'
    '<path class="brand-track" d="M5 18.5a9 9 0 1 1 14 0"/>'
    '<path class="brand-used" d="M5 18.5A9 9 0 0 1 12 4"/><circle cx="12" cy="13" r="2"/></svg>'
)


def document(title: str, body: Html, *, styles: str, script: str = "") -> bytes:
    """Return a whole file. `styles` and `script` are its own, after those of all files."""
    styles = (FOLDER / "colours.css").read_text("utf-8") + _own("pages.css") + styles
    policy = f"default-src 'none'; style-src {_hash(styles)}; base-uri 'none'; form-action 'none'"
    if script:
        policy += f"; script-src {_hash(script)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content=f"contextgauge {__version__}"),
        tag("title", title),
        tag("style", Html(styles)),
    )
    end = tag("script", Html(script)) if script else Html("")
    page = tag("html", head, tag("body", body, end), lang="en")
    return joined(Html("<!doctype html>\n"), page, "\n").encode("utf-8", "replace")


def write_whole(target: Path, content: bytes) -> None:
    """Write a file, or replace it at once. Raises ConfigError where that is not possible."""
    own = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        own.write_bytes(content)
        own.replace(target)
    except OSError as error:
        own.unlink(missing_ok=True)
        raise ConfigError(f"--out {target}: {error.strerror}") from error


def _own(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return what lets a policy allow this text and no other."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
