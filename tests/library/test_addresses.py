"""Addresses of sessions: readable where they can be, and safe for every id."""

import re
from urllib.parse import quote, unquote, urljoin

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextgauge.addresses import hashed_address, is_hashed, session_address

BASE = "http://127.0.0.1/v1/sessions/"
SAFE = re.compile(r"[A-Za-z0-9._~%!'()*-]{1,1000}")


@given(st.text())
@example(".")
@example("\0")
def test_an_address_is_a_short_part_of_a_path_that_no_client_changes(session_id: str) -> None:
    address = session_address(session_id)
    assert SAFE.fullmatch(address)
    assert urljoin(BASE, address) == BASE + address
    assert is_hashed(address) or unquote(address) == session_id


@pytest.mark.parametrize(
    "session_id", ["0198c7a2-5d3e", "a/b", "ä b", "~", "a(1)", "~0198", "...", "a" * 900]
)
def test_an_address_is_the_encoded_id_where_that_is_safe(session_id: str) -> None:
    assert session_address(session_id) == quote(session_id, safe="()")


@pytest.mark.parametrize("session_id", ["..", "", "ж" * 1_500, "half \ud800 a character"])
def test_an_id_that_no_address_can_have_is_hashed(session_id: str) -> None:
    hashed = hashed_address(session_id.encode("utf-8", "surrogatepass"))
    assert session_address(session_id) == hashed


def test_an_id_that_looks_like_a_hash_is_hashed() -> None:
    hashed = session_address("..")
    assert hashed == hashed_address(b"..") == "~5ec1f7e700f37c3d0b2981d04855fc34"
    assert session_address(hashed) == hashed_address(hashed.encode()) != hashed
