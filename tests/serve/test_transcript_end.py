"""A plain end of a transcript tells what the derivation tells; what is not plain is left to it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.core.derivation.rules import Rules
from streams.edge.files.catalog import bundled
from streams.edge.files.transcript_tail import BodyLine, Tail, read_tail
from streams.flow.replay.glance import look
from streams.serve.statusline.figures import Figures
from streams.serve.statusline.transcript_end import plain_end
from tests import captures

RULES = Rules(bundled())
MODEL = "claude-sonnet-4-5"
MOMENT = "2026-11-01T12:00:00.000Z"


def derived(tail: Tail, session_id: str = "s") -> Figures:
    """What the derivation makes of a tail, without what only it tells."""
    seen = look(RULES, session_id, tail.older, tail.lines)
    assert seen is not None
    return Figures(
        model=seen.model,
        state=seen.state,
        used_tokens=seen.used_tokens,
        compactions=seen.compactions,
        last_duration_ms=seen.last_duration_ms,
        all_compactions_seen=tail.has_all_older,
    )


def plain(tail: Tail, session_id: str = "s") -> Figures | None:
    found = plain_end(tail, session_id)
    return None if found is None else found.figures._replace(last_ms=None)


def tail_of(*bodies: dict[str, Any]) -> Tail:
    lines = [BodyLine(body, json.dumps(body).encode()) for body in bodies]
    return Tail([], lines, is_whole=True, has_all_older=True)


def line(kind: str, uuid: str, **fields: Any) -> dict[str, Any]:
    common = {"type": kind, "sessionId": "s", "uuid": uuid, "timestamp": MOMENT}
    return common | {"isSidechain": False} | fields


def response(number: int, tokens: int, uuid: str = "", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 1, "cache_read_input_tokens": tokens - 1, "iterations": []}
    message = {"id": f"msg_{number}", "model": MODEL, "usage": usage, "content": []}
    return line("assistant", uuid or f"r{number}-{tokens}", message=message, **fields)


def boundary(number: int, **metadata: Any) -> dict[str, Any]:
    told = {"trigger": "auto", "preTokens": 150_000} | metadata
    return line("system", f"b{number}", subtype="compact_boundary", compactMetadata=told)


def compare(lines: list[bytes], part: Path) -> tuple[int, int]:
    """Compare both readings of a transcript cut in twenty places; return how many were plain."""
    sessions = [json.loads(each).get("sessionId") for each in lines]
    session_id = next(each for each in sessions if each is not None)
    compared = is_plain = 0
    for cut in range(len(lines) // 20, len(lines), max(1, len(lines) // 20)):
        part.write_bytes(b"".join(line + b"\n" for line in lines[: cut + 1]))
        tail = read_tail(str(part), 65_536)
        end = plain(tail, session_id)
        compared += 1
        if end is not None:
            is_plain += 1
            assert end == derived(tail, session_id), cut
    return compared, is_plain


@pytest.mark.parametrize(
    ("name", "most_are_plain"), [("auto_compaction", False), ("several_lines", True)]
)
def test_a_transcript_wherever_it_is_cut(
    name: str, tmp_path: Path, *, most_are_plain: bool
) -> None:
    compared, is_plain = compare(captures.TRANSCRIPTS[name](), tmp_path / "part.jsonl")
    assert is_plain > (compared / 2 if most_are_plain else 0)


@pytest.mark.shared
def test_real_transcripts_wherever_they_are_cut(shared: Path, tmp_path: Path) -> None:
    paths = sorted((shared / "fixtures" / "claude-code").glob("*.jsonl"))
    results = [compare(path.read_bytes().splitlines(), tmp_path / "part.jsonl") for path in paths]
    assert sum(plain_ends for _, plain_ends in results) > sum(cuts for cuts, _ in results) / 2


TOKENS = st.sampled_from([10, 500, 60_000])
BODIES = st.one_of(
    st.builds(response, st.integers(1, 3), TOKENS),
    st.builds(response, st.integers(1, 3), TOKENS, st.sampled_from(["x", "y", "z"])),
    st.builds(lambda tokens: response(9, tokens, isSidechain=True, agentId="a"), TOKENS),
    st.builds(boundary, st.integers(1, 4), durationMs=st.sampled_from([None, 5, 9_000])),
    st.sampled_from(
        [
            line("user", "u1", message={"content": "go on"}),
            line("user", "u2", message={"content": "<command-name>/clear</command-name>"}),
            line("user", "u3", message={"content": "told"}, isCompactSummary=True),
            line("assistant", "e", message={"model": "<synthetic>", "usage": {"input_tokens": 0}}),
            response(4, 700, isApiErrorMessage=True),
            line("progress", "p", data={"compact": 1}),
            line("system", "i", subtype="init", model=f"{MODEL}[1m]"),
        ]
    ),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(BODIES, min_size=1, max_size=9))
def test_a_plain_end_is_what_is_derived(bodies: list[dict[str, Any]]) -> None:
    tail = tail_of(*bodies)
    found = plain(tail)
    if found is not None:
        assert found == derived(tail)


def test_what_is_plain() -> None:
    tail = tail_of(
        response(1, 500), boundary(1, durationMs=70), response(2, 900), response(2, 900, "x")
    )
    found = plain_end(tail, "s")
    assert found is not None
    seen, largest = found
    assert (seen.used_tokens, seen.model, seen.state, largest) == (900, MODEL, "measured", 900)
    assert (seen.compactions, seen.last_duration_ms) == (1, 70)
    assert seen.last_ms == 1_793_534_400_000
    bound = plain(tail_of(response(1, 500), boundary(1)))
    assert bound is not None
    assert (bound.used_tokens, bound.model, bound.state) == (None, MODEL, "unknown")
    one_call = response(1, 500)
    call = {"type": "message", "input_tokens": 7, "cache_read_input_tokens": 40}
    one_call["message"]["usage"]["iterations"] = [call]
    tail = tail_of(one_call)
    assert plain(tail) == derived(tail)
    assert derived(tail).used_tokens == 47


def _changed(**fields: Any) -> dict[str, Any]:
    body = response(1, 500)
    body["message"] = body["message"] | fields
    return body


def _used(**fields: Any) -> dict[str, Any]:
    return _changed(usage={"input_tokens": 9} | fields)


NOT_PLAIN: list[list[dict[str, Any]]] = [
    [],
    [line("user", "u", message={"content": "hello"})],
    [response(1, 500), response(2, 900), response(1, 500)],
    [response(1, 500), response(2, 900), response(1, 500, "x")],
    [response(1, 500), line("user", "u", message={"content": "<command-name>/clear"})],
    [response(1, 500), boundary(1), boundary(1)],
    [response(1, 500) | {"sessionId": "t"}],
    [response(1, 500) | {"agentId": "a"}],
    [response(1, 500) | {"timestamp": "2026-11-01T12:00:00"}],
    [response(1, 500) | {"timestamp": 5}],
    [response(1, 500) | {"message": "text"}],
    [response(1, 500) | {"isApiErrorMessage": True}],
    [response(1, 500), line("result", "x")],
    [response(1, 500), line("system", "x", subtype="autocompact_state")],
    [response(1, 500), boundary(1) | {"compactMetadata": None}],
    [response(1, 500), boundary(1, durationMs=-1)],
    [response(1, 500), boundary(1) | {"uuid": None}],
    [_changed(model="<synthetic>")],
    [_changed(model=f"{MODEL}[1m]")],
    [_changed(id=None)],
    [_changed(content=[{"type": "compaction", "content": "c"}])],
    [_changed(usage=None)],
    [_used(input_tokens=0)],
    [_used(input_tokens=-1)],
    [_used(input_tokens=True)],
    [_used(input_tokens=2**53)],
    [_used(input_tokens_details={"cached_tokens": 5})],
    [_used(iterations=[{"type": "message"}, {"type": "message"}])],
    [_used(iterations=[{"type": "advisor_message", "input_tokens": 5}])],
    [_used(iterations="x")],
]


@pytest.mark.parametrize("bodies", NOT_PLAIN, ids=range(len(NOT_PLAIN)))
def test_what_is_not_plain_is_left_to_the_derivation(bodies: list[dict[str, Any]]) -> None:
    assert plain(tail_of(*bodies)) is None
