"""Entries of the log of commands, as a worker reads what anyone may have written there."""

import pytest

from contextgauge.errors import VersionError
from schemas.commands import CommandEntry, TextDeleted
from streams.codec.commands import read_entry, write_entry

ENTRY = CommandEntry("d-1", 1_790_000_000_000, TextDeleted(session_id="s", requested_by="me"))


def test_an_entry_is_read_back() -> None:
    headers, value = write_entry(ENTRY)
    assert read_entry((("trace", None), *headers), value) == ENTRY


@pytest.mark.parametrize("name", ["ce_id", "ce_type", "ce_time"])
def test_a_null_header_is_like_a_missing_one(name: str) -> None:
    headers, value = write_entry(ENTRY)
    without = tuple(header for header in headers if header[0] != name)
    for changed in (without, (*without, (name, None))):
        with pytest.raises(VersionError, match=f"no header '{name}'"):
            read_entry(changed, value)
