"""Documents of Redis that no build wrote: an error that says so, whatever they hold."""

import pytest

from contextgauge.errors import VersionError
from schemas.views import SessionView
from streams.codec import view_codec
from streams.codec.control_views import read_view
from streams.codec.conversations import KeptPosition, conversation_of, read_line
from streams.flow.derive.stored_sessions import wrong_version
from tests.core.given import nested

DAMAGED = [
    b"",
    b"{",
    b"\xff",
    b"null",
    b"[1]",
    b'{"version":[]}',
    nested(5_000),
    b'{"version":"1"}',
]


@pytest.mark.parametrize("document", DAMAGED)
def test_a_damaged_view_is_a_version_error(document: bytes) -> None:
    with pytest.raises(VersionError, match="SessionView document is damaged"):
        view_codec.decode(SessionView, document)


@pytest.mark.parametrize("document", DAMAGED)
def test_a_damaged_view_of_the_control_plane_is_a_version_error(document: bytes) -> None:
    with pytest.raises(VersionError, match="of version None"):
        read_view(document)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"7",
        b'{"o":1}',
        b'{"o":"1","t":2}',
        b'{"o":1,"t":2,"l":7}',
        b'{"o":1,"t":2,"b":[]}',
    ],
)
def test_a_damaged_line_of_a_conversation_is_a_version_error(line: bytes) -> None:
    with pytest.raises(VersionError, match="a line of a conversation cannot be read"):
        read_line(line)


def test_a_base_without_its_fields_is_a_version_error() -> None:
    entry = b'{"agent_id":null,"project":null,"first_offset":0,"last_ms":0}'
    with pytest.raises(VersionError, match="base"):
        conversation_of(entry, [b'{"o":1,"t":2,"b":{"version":"x"}}'], KeptPosition(3))


def test_a_version_that_is_none_is_reported_in_short() -> None:
    assert len(str(wrong_version("the state", [[]] * 1_000, 1))) < 200
