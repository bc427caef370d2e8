"""Tokens of images: by their size, never by the length of their base64."""

import base64
import struct
from typing import Any

import pytest

from contextgauge.compaction.formats import read_messages, write_messages
from contextgauge.compaction.formats.images import size_of_image
from contextgauge.compaction.messages import FormatName, Image

WIDTH, HEIGHT = 1_000, 300


def encoded(value: bytes) -> str:
    return base64.b64encode(value + bytes(2_000)).decode()


PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", WIDTH, HEIGHT)
GIF = b"GIF89a" + struct.pack("<HH", WIDTH, HEIGHT)
VP8 = b"RIFF----WEBPVP8 ----\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", WIDTH, HEIGHT)
VP8L = b"RIFF----WEBPVP8L----\x2f" + struct.pack("<I", WIDTH - 1 | (HEIGHT - 1) << 14)
VP8X = (
    b"RIFF----WEBPVP8X----\x00\x00\x00\x00"
    + struct.pack("<I", WIDTH - 1)[:3]
    + struct.pack("<I", HEIGHT - 1)[:3]
)
EXIF = b"\xff\xe1" + struct.pack(">H", 60_000) + bytes(59_998)
FRAME = b"\xff\xc2" + struct.pack(">HBHH", 17, 8, HEIGHT, WIDTH)
TABLES = b"\xff\xc4\x00\x04\x00\x00"
JPEG = b"\xff\xd8" + EXIF + TABLES + b"\xff" + FRAME


@pytest.mark.parametrize("value", [PNG, GIF, VP8, VP8L, VP8X, JPEG])
def test_the_size_is_in_the_first_bytes(value: bytes) -> None:
    assert size_of_image(encoded(value)) == (WIDTH, HEIGHT)


@pytest.mark.parametrize(
    "value",
    [b"", b"\xff\xd8", b"\xff\xd8\xff\xd9", b"BM", PNG[:20], GIF[:8], b"RIFF----WEBPnone----"],
)
def test_an_unknown_size_is_none(value: bytes) -> None:
    assert size_of_image(base64.b64encode(value).decode()) is None


@pytest.mark.parametrize("text", ["", "no base64 — at all", "\ud800AAA", "A"])
def test_what_is_no_base64_has_no_size(text: str) -> None:
    assert size_of_image(text) is None


def image(name: FormatName, media_type: str, data: str) -> Any:
    part: Any = {
        "anthropic": {
            "type": "image" if media_type.startswith("image") else "document",
            "source": {"type": "base64", "media_type": media_type, "data": data},
        },
        "openai-chat": {
            "type": "image_url",
            "image_url": {"url": f"data:{media_type};base64,{data}"},
        },
        "openai-responses": {
            "type": "input_image",
            "image_url": f"data:{media_type};base64,{data}",
        },
        "gemini": {"inlineData": {"mimeType": media_type, "data": data}},
        "plain": {"type": "image", "image": data, "mimeType": media_type},
    }[name]
    return [{"role": "user", "parts" if name == "gemini" else "content": [part]}]


FORMATS: list[FormatName] = ["anthropic", "openai-chat", "openai-responses", "gemini", "plain"]


@pytest.mark.parametrize("name", FORMATS)
def test_an_image_of_every_format_is_sized(name: FormatName) -> None:
    (message,) = read_messages(image(name, "image/png", encoded(PNG)), name)
    assert message.blocks == (Image(400, "image/png"),)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_an_image_is_written_in_every_format(name: FormatName, target: FormatName) -> None:
    messages = read_messages(image(name, "image/png", encoded(PNG)), name)
    (again,) = read_messages(write_messages(messages, target), target)
    assert again.blocks == (Image(400, "image/png"),)


def test_a_huge_image_counts_what_the_largest_may() -> None:
    large = PNG[:16] + struct.pack(">II", 8_000, 8_000)
    (message,) = read_messages(image("anthropic", "image/png", encoded(large)), "anthropic")
    assert message.blocks == (Image(4_784, "image/png"),)


def test_a_document_and_a_file_elsewhere_count_a_constant() -> None:
    document = image("anthropic", "application/pdf", "A" * 100_000)
    (message,) = read_messages(document, "anthropic")
    assert message.blocks == (Image(3_000, "application/pdf"),)
    part = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
    (message,) = read_messages([{"role": "user", "content": [part]}], "anthropic")
    assert message.blocks == (Image(1_600, "image/*"),)
    assert write_messages([message], "openai-chat") == []
