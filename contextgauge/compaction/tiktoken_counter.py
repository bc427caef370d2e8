"""Exact counts for OpenAI's models: the extra `tiktoken`, with tables that are on this machine.

Nothing is downloaded: where the package or a model's table is missing, the estimate is taken, and
that is logged once. A table is looked for in `TIKTOKEN_CACHE_DIR`, as tiktoken stores it or by its
published name (`o200k_base.tiktoken`), and counts only if its SHA-256 is the published one.
"""

import base64
import binascii
import hashlib
import logging
import os
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from contextgauge.compaction.counting import ESTIMATE, Counter, message_tokens
from contextgauge.compaction.messages import Message

if TYPE_CHECKING:
    import tiktoken

_logger = logging.getLogger("contextgauge.compaction")

_PIECE_CHARACTERS: Final = 50_000
"""Longer texts are counted in pieces, so that one without spaces takes linear time too; a token
cut in two adds one."""


class Table(NamedTuple):
    """A published table: tiktoken's name for its file, its hash, and how texts are divided."""

    cached_name: str
    sha256: str
    pattern: str


# The divisions are those of tiktoken's own `openai_public` (MIT License).
TABLES: Final = {
    "cl100k_base": Table(
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    "o200k_base": Table(
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
}

_SAME_TABLE: Final = {"o200k_harmony": "o200k_base"}
"""Encodings that differ only in special tokens, which texts are not searched for."""


@dataclass(frozen=True, slots=True)
class TiktokenCounter:
    """Counts texts with one encoding; calls, results and roles as the estimate does."""

    encoding: "tiktoken.Encoding" = field(repr=False)

    def text(self, text: str) -> int:
        """Return the tokens of a text."""
        return sum(
            len(self.encoding.encode_ordinary(text[start : start + _PIECE_CHARACTERS]))
            for start in range(0, len(text), _PIECE_CHARACTERS)
        )

    def message(self, message: Message) -> int:
        """Return the tokens of a message."""
        return message_tokens(message, self)


def tiktoken_counter(model: str) -> Counter:
    """Return the counter of a model, or the estimate where its table is not on this machine."""
    cache_folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    folder = Path(cache_folder or Path(tempfile.gettempdir()) / "data-gym-cache")
    return _counter(model, folder)


@cache
def _counter(model: str, folder: Path) -> Counter:
    """Return a counter; cached, so that a reason for the estimate is logged once."""
    try:
        import tiktoken  # noqa: PLC0415 -- an extra
        from tiktoken.model import encoding_name_for_model  # noqa: PLC0415 -- an extra
    except ImportError:
        _logger.warning(
            "tokens of %s are estimated: tiktoken is not installed "
            "(install contextgauge with the extra tiktoken)",
            model,
        )
        return ESTIMATE
    try:
        name = encoding_name_for_model(model)
    except KeyError:
        _logger.warning("tokens of %s are estimated: tiktoken does not know the model", model)
        return ESTIMATE
    name = _SAME_TABLE.get(name, name)
    ranks = _ranks(name, folder)
    if ranks is None:
        _logger.warning(
            "tokens of %s are estimated: %s has no valid table %s.tiktoken, and none is downloaded",
            model,
            folder,
            name,
        )
        return ESTIMATE
    return TiktokenCounter(
        tiktoken.Encoding(
            name, pat_str=TABLES[name].pattern, mergeable_ranks=ranks, special_tokens={}
        )
    )


def _ranks(name: str, folder: Path) -> dict[bytes, int] | None:
    """Return the first valid table of an encoding in a folder; None where there is none."""
    table = TABLES.get(name)
    if table is None:
        return None
    for file in (table.cached_name, f"{name}.tiktoken"):
        try:
            value = (folder / file).read_bytes()
            if hashlib.sha256(value).hexdigest() == table.sha256:
                pairs = (line.split() for line in value.splitlines() if line)
                return {base64.b64decode(token): int(rank) for token, rank in pairs}
        except (OSError, ValueError, binascii.Error):
            continue
    return None
