"""Which thresholds a session has: by rules of the file, and by what was set later."""

import pytest

from contextgauge.errors import ConfigError
from schemas.commands import ThresholdScope, ThresholdsSet
from streams.core.alerts.rules import Patterns
from streams.core.control import thresholds as thresholds_module
from streams.core.control.thresholds import (
    SessionRule,
    SessionThresholds,
    Sizes,
    Subject,
    ThresholdBook,
    check_entry,
    order_faults,
    parse_size,
    tokens_of,
    written,
)
from streams.core.until_compaction import Threshold

SUBJECT = Subject("s-1", "reviewer", "/repos/app", "claude-sonnet-5")


def only(*texts: str) -> Patterns:
    return Patterns(texts)


def entry(scope: ThresholdScope, name: str, **what: object) -> ThresholdsSet:
    return ThresholdsSet(scope=scope, name=name, requested_by="ada", **what)  # type: ignore[arg-type]


def at(percent: float) -> Threshold:
    return Threshold(percent=percent)


def test_without_a_rule_nothing_is_automatic() -> None:
    thresholds = ThresholdBook([]).of(SUBJECT)
    assert not thresholds.automatic
    assert thresholds.sizes(200_000) == Sizes(170_000, 100_000, 190_000)


@pytest.mark.parametrize(
    ("profile", "window", "compact_at", "compact_to"),
    [
        ("default", 200_000, 170_000, 100_000),
        ("seed-001", 200_000, 170_000, 170_000),
        ("seed-002", 128_000, 93_600, 93_600),
        ("seed-002", 200_000, 151_200, 151_200),
        ("seed-002", 8_192, 6_553, 6_553),  # its reserves are larger: they are left aside
        ("seed-004", 128_000, 115_200, 64_000),
        ("seed-004", 200_000, 180_000, 100_000),
    ],
)
def test_without_sizes_of_its_own_a_session_has_those_of_its_profile(
    profile: str, window: int, compact_at: int, compact_to: int
) -> None:
    sizes = ThresholdBook([SessionRule(automatic=True, profile=profile)]).of(SUBJECT).sizes(window)
    assert sizes is not None
    assert sizes[:2] == (compact_at, compact_to)


def test_a_size_that_is_set_comes_before_the_profiles() -> None:
    rule = SessionRule(profile="seed-004", compact_at=at(40))
    assert ThresholdBook([rule]).of(SUBJECT).sizes(200_000) == Sizes(80_000, 80_000, 190_000)


def test_a_session_beats_a_project_an_agent_a_model_and_the_default() -> None:
    rules = [
        SessionRule(sessions=only("s-*"), compact_at=at(50)),
        SessionRule(projects=only("app"), compact_at=at(51)),
        SessionRule(agents=only("rev*"), compact_at=at(52)),
        SessionRule(models=only("claude-*"), compact_at=at(53)),
        SessionRule(compact_at=at(54)),
    ]
    for first in range(5):
        assert ThresholdBook(rules[first:]).of(SUBJECT).compact_at == at(50 + first)
        assert ThresholdBook(rules[first:][::-1]).of(SUBJECT).compact_at == at(50 + first)


def test_what_names_more_wins_and_then_the_later_one() -> None:
    both = SessionRule(agents=only("reviewer"), models=only("claude-*"), compact_at=at(60))
    agent = SessionRule(agents=only("reviewer"), compact_at=at(61))
    assert ThresholdBook([both, agent]).of(SUBJECT).compact_at == at(60)
    other = SessionRule(agents=only("*"), compact_at=at(62))
    assert ThresholdBook([agent, other]).of(SUBJECT).compact_at == at(62)


def test_a_rule_changes_only_what_it_names() -> None:
    rules = [
        SessionRule(automatic=True, driver="opencode"),
        SessionRule(models=only("claude-*"), compact_to=at(30)),
    ]
    assert ThresholdBook(rules).of(SUBJECT) == SessionThresholds(
        automatic=True, driver="opencode", compact_to=at(30)
    )


def test_what_was_set_comes_after_the_file_and_null_leaves_it() -> None:
    book = ThresholdBook([SessionRule(agents=only("reviewer"), automatic=True, compact_at=at(70))])
    book.apply(entry("agent", "reviewer", compact_at="60%"))
    assert book.of(SUBJECT).automatic
    assert book.of(SUBJECT).compact_at == at(60)
    book.apply(entry("session", "s-1", automatic=False))
    assert not book.of(SUBJECT).automatic
    assert book.of(SUBJECT._replace(session_id="s-2")).automatic
    book.apply(entry("session", "s-1"))
    book.apply(entry("agent", "reviewer"))
    assert book.of(SUBJECT) == SessionThresholds(automatic=True, compact_at=at(70))


@pytest.mark.parametrize("name", ["app", "/repos/app"])
def test_a_project_is_named_by_its_path_or_its_folder(name: str) -> None:
    book = ThresholdBook([])
    book.apply(entry("project", name, automatic=True))
    assert book.of(SUBJECT).automatic
    assert not book.of(SUBJECT._replace(project="/repos/other")).automatic
    assert not book.of(SUBJECT._replace(project=None)).automatic


def test_an_excluded_project_is_excluded_by_either_name() -> None:
    rule = SessionRule(projects=only("!app"), automatic=True)
    assert not rule.fits(SUBJECT)
    assert rule.fits(SUBJECT._replace(project="C:\\work\\tool"))


def test_an_entry_that_is_not_valid_changes_nothing() -> None:
    book = ThresholdBook([])
    book.apply(entry("session", "s-1", automatic=True, compact_at="lots"))
    assert book.of(SUBJECT) == SessionThresholds()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("85%", 170_000),
        ("83.5 %", 167_000),
        ("120000", 120_000),
        (120_000, 120_000),
        ("7%", 14_000),
    ],
)
def test_a_size_is_a_share_or_tokens(text: object, tokens: int) -> None:
    threshold = parse_size(text, "compact_at")
    assert tokens_of(threshold, 200_000) == tokens
    assert parse_size(written(threshold), "compact_at") == threshold


@pytest.mark.parametrize("text", ["", "0", "0%", "101%", "-5", "much", 0, 1.5, True, None, "½"])
def test_what_is_no_size_is_refused_with_what_to_write(text: object) -> None:
    with pytest.raises(ConfigError, match=r'compact_at .* is not a size: .*"85%"'):
        parse_size(text, "compact_at")


def test_sizes_are_in_order() -> None:
    both = order_faults(at(99), at(100), at(95))
    assert [(key, fault.partition(":")[0]) for key, fault in both] == [
        ("compact_to", "100% is above compact_at 99%"),
        ("compact_at", "99% is above hard_at 95%"),
    ]
    # These do not compare without a window.
    assert list(order_faults(Threshold(tokens=100), at(60), None)) == []
    with pytest.raises(ConfigError, match="compact_to 200 is above compact_at 100"):
        check_entry(entry("session", "s-1", compact_at="100", compact_to="200"))
    with pytest.raises(ConfigError, match="which agent"):
        check_entry(entry("agent", "", compact_at="100"))


def test_a_figure_above_a_small_window_is_bounded_by_the_hard_limit() -> None:
    thresholds = SessionThresholds(compact_at=Threshold(tokens=120_000), compact_to=at(100))
    assert thresholds.sizes(8_000) == Sizes(7_600, 7_600, 7_600)
    assert thresholds.sizes(None) == Sizes(120_000, 120_000, None)
    assert SessionThresholds().sizes(None) is None


def test_what_is_set_for_very_many_names_pushes_the_oldest_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thresholds_module, "MOST_SET", 2)
    book = ThresholdBook(())
    for name in ("a", "b", "c"):
        book.apply(entry("agent", name, automatic=True))
    automatic = [book.of(Subject("s", name, None, None)).automatic for name in ("a", "b", "c")]
    assert automatic == [False, True, True]
