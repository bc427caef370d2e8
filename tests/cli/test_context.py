"""`contextgauge context`: what it counts of a conversation."""

import re

import pytest
from typer.testing import CliRunner

from contextgauge.clock import SystemClock
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.records import Json
from schemas.views import ChainView
from streams import wiring
from streams.cli.app import app
from streams.cli.context import breakdown
from streams.core.conversation.fold import ConversationFold
from tests.serve.kit import GrowingViews, sample_records
from tests.serve.text_kit import OneConversation


def conversation(*, is_cut: bool, is_reset: bool = False) -> SessionConversation:
    """Return one that was compacted three times."""
    fold, lines = ConversationFold(), list[dict[str, Json]]()
    for number in range(3):
        text = f"turn {number}"
        lines += (
            {"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": text}},
            {"type": "system", "subtype": "compact_boundary", "uuid": f"b{number}"},
            {
                "type": "user",
                "uuid": f"s{number}",
                "isCompactSummary": True,
                "message": {"role": "user", "content": "So far."},
            },
        )
    if is_reset:
        lines.append({"type": "conversation_reset", "uuid": "r"})
    for offset, line in enumerate(lines):
        fold.add(line, offset)
    if is_cut:
        cut = ConversationFold()
        cut.begin_with(fold.base(), len(lines))
        fold = cut
    return fold.result


@pytest.mark.parametrize("is_cut", [False, True])
def test_summaries_counts_all_compactions(monkeypatch: pytest.MonkeyPatch, *, is_cut: bool) -> None:
    shown = _shown(monkeypatch, conversation(is_cut=is_cut))
    assert "| Active Messages       1 " in shown
    assert "| Total Messages        6 " in shown
    assert "| Summaries             3 " in shown
    assert "Status: Compressed" in shown


def test_after_a_reset_nothing_is_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _shown(monkeypatch, conversation(is_cut=False, is_reset=True))
    assert "| Summaries             3 " in shown
    assert "Status: Uncompressed" in shown


@pytest.mark.parametrize(
    ("age_ms", "behind", "note"),
    [
        (4_000, 0, ""),
        (4_000, 1, "is behind: 1 message of the session's partition not read yet"),
        (600_000, 0, "last reported 10 min ago: what was published since then is missing."),
        (None, None, "How current this is, is not known"),
    ],
)
def test_a_worker_that_is_behind_or_stopped_is_reported(
    monkeypatch: pytest.MonkeyPatch, age_ms: int | None, behind: int | None, note: str
) -> None:
    reported_ms = None if age_ms is None else SystemClock().now_ms() - age_ms
    stored = conversation(is_cut=False)._replace(behind=behind, reported_ms=reported_ms)
    shown = _shown(monkeypatch, stored)
    assert note in " ".join(shown.split())
    assert ("contextgauge conversations" in shown) == bool(note)


def test_all_messages_are_shown_with_markers_that_expand(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = conversation(is_cut=False)
    shown = re.sub(r"~[\d,]+ tokens", "~N tokens", _shown(monkeypatch, stored, "--all"))
    assert shown.splitlines()[:5] == [
        "Context: 1/6 msgs (~0%)",
        "    1  user       turn 0",
        "    2  🗃️  Context Compacted #1  [--expand 2]",
        "       ~N tokens freed",
        "       So far.",
    ]
    assert shown.count("tokens freed") == 3
    long = "# Task\n" + "Mend the checkout. " * 9
    fold = ConversationFold(stored)
    fold.add({"type": "system", "subtype": "compact_boundary", "uuid": "b"}, 90)
    summary: dict[str, Json] = {"role": "user", "content": long}
    fold.add({"type": "user", "uuid": "s", "isCompactSummary": True, "message": summary}, 91)
    fold.add({"type": "user", "uuid": "u", "message": {"role": "user", "content": long}}, 92)
    collapsed = _shown(monkeypatch, fold.result, "--all").splitlines()
    assert len(collapsed) == 13
    assert collapsed[-1] == f"    8  user       {' '.join(long.split())[:77].rstrip()}..."
    opened = _shown(monkeypatch, fold.result, "--all", "--expand", "7").splitlines()
    assert opened[11:14] == ["       # Task", f"       {long[7:].rstrip()}", collapsed[-1]]
    assert "..." not in _shown(monkeypatch, fold.result, "--all", "--expand", "all")


def test_an_earlier_compaction_has_its_own_context(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _shown(monkeypatch, conversation(is_cut=False), "--at", "2")
    assert "| Total Messages        4 " in shown
    assert "| Summaries             2 " in shown
    assert "Reported" not in shown


def _shown(monkeypatch: pytest.MonkeyPatch, kept: SessionConversation, *options: str) -> str:
    records = sample_records()
    views = GrowingViews()
    views.add(*records)
    reader = OneConversation(records[0].data.session_id, kept)
    monkeypatch.setattr(wiring, "redis_views", lambda _settings: views)
    monkeypatch.setattr(wiring, "redis_conversations", lambda _settings: reader)
    result = CliRunner().invoke(app, ["context", reader.session_id, *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_difference_from_the_reported_size_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = conversation(is_cut=False)
    shown = _shown(monkeypatch, stored)
    cells = re.findall(r"^ *([^\n:|]+): (~?)([\d,]+) tokens", shown, re.MULTILINE)
    estimated = {name for name, mark, tokens in cells if mark or tokens == "0"}
    sums = {"Current", "Together", "Conversation", "Not accounted for"}
    assert estimated == {*sums, *breakdown(stored)}
    assert re.search(r"\(~\d+\.\d%\)", shown)
    assert re.search(r"Usage  \[[#.]+\]  ~\d+%", shown)
    rows = {name: tokens for name, _, tokens in cells}
    sizes = {name: int(tokens.replace(",", "")) for name, tokens in rows.items()}
    parts = [sizes[name] for name in breakdown(stored)]
    assert sizes["Current"] == sizes["Together"] == sum(parts)
    reported = sizes["Reported, as in `contextgauge status`"]
    assert sizes["Not accounted for"] == reported - sum(parts) > 0


@pytest.mark.parametrize(
    ("used", "said"),
    [
        (None, "Reported, as in `contextgauge status`: unknown until the next response"),
        (None, "Not accounted for: unknown"),
        (None, "`contextgauge why` estimates the whole request"),
        (2, "Estimated beyond it: ~2 tokens"),
    ],
)
def test_the_reported_size_may_be_unknown_or_below_the_estimate(
    monkeypatch: pytest.MonkeyPatch, used: int | None, said: str
) -> None:
    monkeypatch.setattr(
        "streams.cli.context.leading_chain", lambda _view: ChainView(chain="main", used_tokens=used)
    )
    shown = _shown(monkeypatch, conversation(is_cut=False))
    assert said in shown
