"""Shortening: what derivation reads stays, the largest content goes, the result fits."""

import hashlib
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.delivery.shorten import KEPT_CHARACTERS, MARK, shorten
from schemas.records import Json
from streams import codec


def short(body: dict[str, Any], limit: int) -> dict[str, Any] | None:
    return shorten(body, codec.dumps(body), limit, codec.dumps)


def response(content: object) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 9, "note": "n" * 3_000}
    message = {"id": "m", "model": "claude-3", "content": content, "usage": usage}
    return {"type": "assistant", "uuid": "u", "session_id": "s", "message": message}


def test_the_largest_text_becomes_a_marked_stub() -> None:
    large = "é" * 9_000
    body = response([{"type": "text", "text": large}, {"type": "text", "text": "s" * 2_000}])
    shortened = short(body, 10_000)
    assert shortened is not None
    content = shortened["message"]["content"]
    digest = hashlib.sha256(large.encode()).hexdigest()
    assert content[0]["text"] == (
        "é" * KEPT_CHARACTERS + f"[contextgauge: 18000 bytes left out, sha256 {digest}]"
    )
    assert content[1]["text"] == "s" * 2_000
    assert shortened["message"]["usage"] == body["message"]["usage"]
    original = codec.dumps(body)
    assert shortened[MARK] == {
        "bytes": len(original),
        "sha256": hashlib.sha256(original).hexdigest(),
    }
    assert len(codec.dumps(shortened)) <= 10_000


def test_the_input_message_is_not_modified() -> None:
    body = response("x" * 9_000)
    before = json.dumps(body)
    short(body, 6_000)
    assert json.dumps(body) == before


def test_command_tags_at_a_texts_beginning_stay() -> None:
    shortened = short({"type": "user", "message": "<local-command-stdout>" + "x" * 9_000}, 2_000)
    assert shortened is not None
    assert shortened["message"].startswith("<local-command-stdout>x")


def test_fields_used_by_rules_are_never_shortened() -> None:
    metadata = {"trigger": "auto", "note": "n" * 9_000}
    assert short({"type": "system", "uuid": "u", "compact_metadata": metadata}, 4_000) is None
    assert short({"type": "user", "uuid": "u" * 9_000, "message": "x"}, 4_000) is None
    assert short({"message": {"usage": {"n": "n" * 9_000}, "content": []}}, 4_000) is None


@pytest.mark.parametrize("name", ["toolUseResult", "tool_use_result"])
def test_an_agents_result_keeps_its_model_and_another_tools_is_replaced_whole(name: str) -> None:
    rows = [{"n": n} for n in range(3_000)]
    result = {"resolvedModel": "claude-opus-4-6[1m]", "content": rows, "prompt": "p" * 9_000}
    shortened = short({"type": "user", "message": "x", name: result}, 2_000)
    assert shortened is not None
    assert shortened[name]["resolvedModel"] == "claude-opus-4-6[1m]"
    assert shortened[name]["content"].startswith("[contextgauge: ")
    shortened = short({"type": "user", "message": "x", name: {"info": rows}}, 2_000)
    assert shortened is not None
    assert shortened[name].startswith("[contextgauge: ")


def test_a_list_of_many_small_items_is_replaced_whole() -> None:
    body = response([{"n": n} for n in range(3_000)]) | {"toolUseResult": {"kept": [1, 2, 3]}}
    shortened = short(body, 6_000)
    assert shortened is not None
    assert shortened["message"]["content"].startswith("[contextgauge: ")
    assert shortened["toolUseResult"] == {"kept": [1, 2, 3]}
    assert shortened["message"]["usage"] == body["message"]["usage"]


def test_the_smallest_sufficient_branch_is_replaced() -> None:
    numbers = list(range(1_000))
    body = {"type": "x", "more": {"first": numbers * 5, "second": numbers * 3, "third": numbers}}
    size = len(codec.dumps(body))
    shortened = short(body, size - len(codec.dumps(numbers)) * 2)
    assert shortened is not None
    assert [type(shortened["more"][name]) for name in ("first", "second", "third")] == [
        list,
        str,
        list,
    ]


def test_several_branches_are_replaced_if_one_is_not_enough() -> None:
    numbers = list(range(2_000))
    body = {"a": numbers, "b": [numbers], "c": numbers, "type": "x"}
    shortened = short(body, 12_000)
    assert shortened is not None
    assert [type(shortened[name]) for name in "abc"].count(str) >= 2
    assert len(codec.dumps(shortened)) <= 12_000


def test_wasted_space_alone_is_only_marked() -> None:
    body = {"type": "user", "uuid": "u", "message": "hello"}
    spaced = json.dumps(body, indent=400).encode()
    shortened = shorten(body, spaced, 1_000, codec.dumps)
    assert shortened is not None
    assert {name: shortened[name] for name in body} == body
    assert shortened[MARK]["bytes"] == len(spaced)  # type: ignore[index,call-overload]


def test_different_originals_stay_different() -> None:
    one, other = (short({"type": "user", "message": letter * 9_000}, 2_000) for letter in "ab")
    assert one is not None
    assert other is not None
    assert one[MARK] != other[MARK]


def test_deep_nesting_and_lone_surrogates_are_shortened_too() -> None:
    deep: Any = "\ud800" * 5_000
    for _ in range(1_000):
        deep = [deep]
    shortened = short({"type": "user", "message": {"content": deep}}, 9_000)
    assert shortened is not None
    assert len(codec.dumps(shortened)) <= 9_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9**9) | st.text(max_size=3_000),
    lambda inner: (
        st.lists(inner, max_size=30)
        | st.dictionaries(
            st.sampled_from(["message", "content", "type", "uuid", "usage", "é", "input"]), inner
        )
    ),
    max_leaves=60,
)


@pytest.mark.extended
@given(st.dictionaries(st.text(max_size=5), json_values, max_size=6), st.integers(300, 5_000))
def test_a_stub_fits_the_limit_and_is_deterministic(body: dict[str, Any], limit: int) -> None:
    shortened = short(body, limit)
    assert shortened == short(body, limit)
    if shortened is not None:
        assert len(codec.dumps(shortened)) <= limit
        assert set(shortened) == {*body, MARK}


@pytest.mark.parametrize("limit", [0, 10])
def test_an_impossible_limit_returns_none(limit: int) -> None:
    assert short({"type": "user"}, limit) is None


def many(value: bytes, size: int) -> bytes:
    """Return a JSON list of so many times the value as make about `size` bytes."""
    return b"[" + (value + b",") * (size // (len(value) + 1)) + value + b"]"


WIDE = [b"1", b'"abc"', b"[1]", b'{"a":[1,2]}', b'"' + b"t" * 500 + b'"']


@pytest.mark.parametrize("value", WIDE)
def test_small_values_are_measured_together_and_not_kept(value: bytes) -> None:
    body = response(json.loads(many(value, 2_000_000)))
    original = codec.dumps(body)
    calls = highest = 0

    def dump(part: Json) -> bytes:
        # A copy, for the serialiser's own counts as larger than what of it is ever touched.
        nonlocal calls, highest
        calls += 1
        highest = max(highest, tracemalloc.get_traced_memory()[0])
        return bytes(bytearray(codec.dumps(part)))

    tracemalloc.start()
    shortened = shorten(body, original, 100_000, dump)
    tracemalloc.stop()
    assert shortened is not None
    assert calls < 40_000
    assert highest < 3 * len(original)


def test_large_values_among_many_small_ones_are_found() -> None:
    for small in (1, [1], "s"):
        large: list[Any] = [small] * 100 + ["x" * 5_000] + [small] * 100
        shortened = short({"type": "user", "a": {f"k{n}": v for n, v in enumerate(large)}}, 4_000)
        assert shortened is not None
        assert shortened["a"]["k100"].startswith(
            "x" * KEPT_CHARACTERS + "[contextgauge: 5000 bytes"
        )
        assert shortened["a"]["k101"] == small
        shortened = short({"type": "user", "a": [*large, [*large, "end"]]}, 6_000)
        assert shortened is not None
        assert shortened["a"][100].startswith("x" * KEPT_CHARACTERS + "[contextgauge: 5000 bytes")
        assert shortened["a"][201][100] == shortened["a"][100]
        assert shortened["a"][201][101:] == [small] * 100 + ["end"]


def test_the_smallest_branch_is_found_within_others() -> None:
    numbers = list(range(2_000))
    body = {
        "type": "x",
        "a": [[0] * 100, {"b": numbers, "text": "t" * 2_000}, numbers * 4],
        "too": ["little"] * 200,
    }
    shortened = short(body, len(codec.dumps(body)) - 6_000)
    assert shortened is not None
    assert shortened["a"][0] == [0] * 100
    assert shortened["a"][1]["b"].startswith("[contextgauge: ")
    assert shortened["a"][1]["text"].startswith("t" * KEPT_CHARACTERS + "[contextgauge: 2000 bytes")
    assert shortened["a"][2] == numbers * 4
    assert shortened["too"] == ["little"] * 200


def test_wide_lists_within_wide_lists_are_written_a_few_times_only() -> None:
    nested: Any = "x" * 100_000
    for _ in range(500):
        nested = [*[0] * 33, nested]
    body = response(nested)
    original = codec.dumps(body)
    written = 0

    def dump(part: Json) -> bytes:
        nonlocal written
        shortened = codec.dumps(part)
        written += len(shortened)
        return shortened

    shortened = shorten(body, original, 60_000, dump)
    assert shortened is not None
    assert written < 20 * len(original)
