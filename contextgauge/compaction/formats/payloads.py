"""Images and documents: what each format holds, and how many tokens it is likely to be.

An image read from one format can be written in another where its data or URL is known.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from contextgauge.compaction.formats.fields import Fields
from contextgauge.compaction.formats.images import size_of_image
from contextgauge.compaction.messages import FormatName, Image, JsonSource
from contextgauge.records import Json

PIXELS_PER_TOKEN: Final = 750
"""Anthropic's published figure."""

MOST_IMAGE_TOKENS: Final = 4_784
"""Larger images are scaled down: the limit of the models with the highest resolution."""

IMAGE_TOKENS: Final = 1_600
"""Of an image whose size is unknown: the most that most models charge for one."""

DOCUMENT_TOKENS: Final = 3_000
"""Of a document whose text is unknown: Anthropic's upper figure for a page."""

_IMAGE: Final = "image/*"
_DOCUMENT: Final = "application/octet-stream"


class Payload(NamedTuple):
    """An image or document as every provider can be given it: base64 data, or a URL.

    Neither is known of a file that was uploaded before.
    """

    media_type: str
    data: str | None = None
    url: str | None = None

    @property
    def is_image(self) -> bool:
        """Whether it is an image."""
        return self.media_type.startswith("image/")


def read_image(fields: Fields, source: JsonSource) -> Image:
    """Return an image or document with an estimate of its tokens."""
    payload = _READERS[source.format](fields)
    return Image(_tokens(payload), payload.media_type, source)


def payload_of(image: Image) -> Payload | None:
    """Return what an image holds, of whatever format; None where it lies at its provider."""
    source = image.source
    if source is None or not isinstance(source.value, dict):
        return None
    payload = _READERS[source.format](source.value)
    return payload if payload.data is not None or payload.url is not None else None


def _tokens(payload: Payload) -> int:
    """Return an estimate: by the size where the header has it, else a constant of its kind."""
    if not payload.is_image:
        return DOCUMENT_TOKENS
    size = None if payload.data is None else size_of_image(payload.data)
    if size is None:
        return IMAGE_TOKENS
    width, height = size
    return min(MOST_IMAGE_TOKENS, -(-width * height // PIXELS_PER_TOKEN))


def _text(fields: Mapping[str, Json], *names: str) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str):
            return value
    return None


def _located(location: str, media_type: str) -> Payload:
    """Return what a URL holds or refers to; what is not a URL is base64."""
    if location.startswith("data:"):
        head, _, data = location.removeprefix("data:").partition(",")
        kind, *parameters = head.split(";")
        return Payload(kind or media_type, data if "base64" in parameters else None)
    if "://" in location[:32]:
        return Payload(media_type, url=location)
    return Payload(media_type, location)


def _anthropic(fields: Fields) -> Payload:
    kind = _IMAGE if fields.get("type") == "image" else _DOCUMENT
    held = fields.get("source")
    if not isinstance(held, dict):
        return Payload(kind)
    if (url := _text(held, "url")) is not None:
        return _located(url, kind)
    data = None if held.get("type") == "text" else _text(held, "data")
    return Payload(_text(held, "media_type") or kind, data)


def _openai(fields: Fields) -> Payload:
    """Read a part of chat completions or of the Responses API."""
    kind = _IMAGE if fields.get("type") in {"image_url", "input_image"} else _DOCUMENT
    held = fields.get("image_url") or fields.get("file") or fields.get("input_audio") or fields
    if isinstance(held, str):
        return _located(held, kind)
    if not isinstance(held, dict):
        return Payload(kind)
    location = _text(held, "url", "file_data", "file_url")
    if location is None and "input_audio" in fields:
        return Payload(f"audio/{_text(held, 'format') or 'wav'}", _text(held, "data"))
    return Payload(kind) if location is None else _located(location, kind)


def _gemini(fields: Fields) -> Payload:
    for name in ("inlineData", "inline_data", "fileData", "file_data"):
        held = fields.get(name)
        if isinstance(held, dict):
            media_type = _text(held, "mimeType", "mime_type") or _DOCUMENT
            data = _text(held, "data")
            if data is not None:  # in the SDK's alphabet for URLs
                data = data.replace("-", "+").replace("_", "/")
            return Payload(media_type, data, _text(held, "fileUri", "file_uri"))
    return Payload(_DOCUMENT)


def _plain(fields: Fields) -> Payload:
    """Read a part of the AI SDK, or a block of Anthropic's kind."""
    if isinstance(fields.get("source"), dict):
        return _anthropic(fields)
    kind = _IMAGE if fields.get("type") == "image" else _DOCUMENT
    kind = _text(fields, "mimeType", "mediaType") or kind
    location = _text(fields, "image", "data", "url")
    return Payload(kind) if location is None else _located(location, kind)


_READERS: Final[dict[FormatName, Callable[[Fields], Payload]]] = {
    "anthropic": _anthropic,
    "openai-chat": _openai,
    "openai-responses": _openai,
    "gemini": _gemini,
    "plain": _plain,
}
