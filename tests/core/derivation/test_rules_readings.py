"""R6 to R8: how large a reading is, by provider."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.records import ContextReading
from streams.core.derivation.readings import used_percent
from tests.core.given import (
    SESSION,
    Body,
    Given,
    any_message,
    assistant,
    every,
    kinds,
    line,
    model_window,
    one,
    plain,
    result,
    token_count,
    usage,
)


def reading(*bodies: Body, hint: str | None = None) -> ContextReading:
    return one(Given().take(*bodies, hint=hint), ContextReading)


def counts(record: ContextReading) -> tuple[int, int | None, int | None, int | None]:
    return (
        record.used_tokens,
        record.input_tokens,
        record.cache_creation_tokens,
        record.cache_read_tokens,
    )


def test_r06_a_size_is_one_responses_snapshot() -> None:
    records = Given().take(assistant("a", 2, 26_768, 24_018), assistant("b", 3, 500, 50_788))
    assert [record.used_tokens for record in every(records, ContextReading)] == [50_788, 51_291]


def test_r06_a_results_usage_sums_a_turn_and_is_no_reading() -> None:
    records = Given().take(assistant(read=100), result())
    assert one(records, ContextReading).used_tokens == 100


def test_r06_model_usage_sums_a_session_and_is_no_reading() -> None:
    windows = {"claude-sonnet-5": model_window(1_000_000) | {"cacheReadInputTokens": 41_000}}
    assert kinds(Given().take(result(windows))) == []


def test_r07_anthropic_reports_the_three_parts_separately() -> None:
    assert counts(reading(assistant("a", 2, 26_768, 24_018, output=999))) == (
        50_788, 2, 26_768, 24_018
    )  # fmt: skip


def test_r07_the_ephemeral_parts_of_the_cache_are_not_added_again() -> None:
    usage_fields = usage(2, 26_768, 24_018) | {
        "cache_creation": {"ephemeral_1h_input_tokens": 26_768}
    }
    assert reading(plain(usage_fields)).used_tokens == 50_788


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ({"input_tokens": 7}, (7, 7, None, None)),
        ({"input_tokens": 7, "cache_read_input_tokens": None}, (7, 7, None, None)),
        ({"cache_read_input_tokens": 9}, (9, None, None, 9)),
        ({"cache_creation_input_tokens": 4, "input_tokens": 0}, (4, 0, 4, None)),
        ({"prompt_tokens": 7}, (7, 7, None, None)),
        ({"prompt_tokens": 7, "prompt_tokens_details": None}, (7, 7, None, None)),
        ({"promptTokenCount": 7}, (7, 7, None, None)),
        ({"input_tokens": 7, "input_tokens_details": {}}, (7, 7, None, None)),
        ({"input_tokens": "x", "input_tokens_details": {"cached_tokens": 2}}, (2, None, None, 2)),
        ({"cachedContentTokenCount": 2}, (2, None, None, 2)),
    ],
)
def test_r07_a_missing_or_null_part_counts_0_and_is_null(
    outcome: Body, expected: tuple[int | None, ...]
) -> None:
    assert counts(reading(plain(outcome))) == expected


def test_r07_openai_chat_reports_cached_tokens_inside_the_prompt() -> None:
    usage_fields = {
        "prompt_tokens": 12_000,
        "completion_tokens": 300,
        "total_tokens": 12_300,
        "prompt_tokens_details": {"cached_tokens": 9_000, "cache_write_tokens": 0},
    }
    assert counts(reading(plain(usage_fields))) == (12_000, 3_000, None, 9_000)


def test_r07_openai_responses_reports_cached_tokens_inside_the_input() -> None:
    figures = {
        "input_tokens": 12_000,
        "input_tokens_details": {"cached_tokens": 9_000},
        "output_tokens": 300,
        "total_tokens": 12_300,
    }
    assert counts(reading(plain(figures))) == (12_000, 3_000, None, 9_000)


def test_r07_gemini_reports_cached_tokens_inside_the_prompt_in_both_spellings() -> None:
    camel = {
        "promptTokenCount": 12_000,
        "cachedContentTokenCount": 9_000,
        "totalTokenCount": 12_420,
    }
    snake = {"prompt_token_count": 12_000, "cached_content_token_count": 9_000}
    assert counts(reading(plain(camel))) == (12_000, 3_000, None, 9_000)
    assert counts(reading(plain(snake))) == (12_000, 3_000, None, 9_000)


def test_r07_codex_reports_cached_tokens_inside_the_input() -> None:
    last = {"input_tokens": 12_000, "cached_input_tokens": 9_000, "output_tokens": 300}
    signals = reading(token_count(last, 40_000), hint="r")
    assert counts(signals) == (12_000, 3_000, None, 9_000)


def test_r07_a_raw_response_of_a_provider_is_read_as_it_is() -> None:
    chat: Body = {"object": "chat.completion", "id": "c1", "model": "gpt-4", "session_id": "s"}
    chat |= {"usage": {"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": 20}}}
    assert counts(reading(chat)) == (50, 30, None, 20)
    bare: Body = {"object": "response", "id": "r1", "model": "gpt-4", "session_id": "s"}
    bare |= {"usage": {"input_tokens": 50, "input_tokens_details": {"cached_tokens": 20}}}
    assert counts(reading(bare)) == (50, 30, None, 20)
    gemini: Body = {"modelVersion": "gemini-2.5-pro", "session_id": "s"}
    gemini |= {"usageMetadata": {"promptTokenCount": 50, "cachedContentTokenCount": 20}}
    signals = reading(gemini)
    assert counts(signals) == (50, 30, None, 20)
    assert signals.model == "gemini-2.5-pro"


def test_r07_messages_of_no_known_provider_are_ignored() -> None:
    given = Given()
    assert given.take({"session_id": "s", "object": "list"}, {"session_id": "s", "object": 1}) == []
    assert given.sessions() == {}


def test_r07_usage_may_be_next_to_the_message() -> None:
    frame = any_message("assistant", usage={"prompt_tokens": 50}, message={"id": "m"})
    assert reading(frame).used_tokens == 50


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": 60}}, (0, None, 50)),
        ({"prompt_tokens": 50, "cache_creation_input_tokens": 60}, (0, 50, None)),
        (
            {
                "prompt_tokens": 50,
                "cache_read_input_tokens": 40,
                "cache_creation_input_tokens": 60,
            },
            (0, 10, 40),
        ),
    ],
)
def test_r07_parts_of_a_prompt_are_cut_to_fit_it_read_first(
    reported: Body, expected: tuple[int | None, ...]
) -> None:
    assert counts(reading(plain(reported))) == (50, *expected)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (
            {
                "prompt_tokens": 160_000,
                "prompt_tokens_details": {"cached_tokens": 50_000},
                "cache_creation_input_tokens": 10_000,
                "cache_read_input_tokens": 50_000,
            },
            (100_000, 10_000, 50_000),
        ),
        (
            {"prompt_tokens": 160_000, "cache_read_input_tokens": 50_000},
            (110_000, None, 50_000),
        ),
        (
            {"prompt_tokens": 160_000, "input_tokens": 3, "cache_creation_input_tokens": 0},
            (160_000, 0, None),
        ),
    ],
)
def test_r07_a_prompt_includes_the_cache_fields_next_to_it(
    reported: Body, expected: tuple[int | None, ...]
) -> None:
    """LiteLLM reports both kinds together."""
    assert counts(reading(plain(reported))) == (160_000, *expected)


@pytest.mark.parametrize(
    "expected",
    [
        {"output_tokens": 3},
        {},
        {"total_tokens": 400},
    ],
)
def test_r07_usage_without_input_tokens_is_no_reading(expected: Body) -> None:
    given = Given()
    assert not every(given.take(plain(expected)), ContextReading)
    assert given.chain().total == 1


def test_r07_codex_usage_without_an_input_is_no_reading() -> None:
    assert not every(Given().take(token_count({"output_tokens": 3}, 9), hint="r"), ContextReading)


def with_iterations(*entries: object) -> Body:
    return assistant(inside={"usage": usage(7, 1_500, 92_000) | {"iterations": list(entries)}})


def entry(kind: str, fresh: int, read: int) -> Body:
    return {"type": kind} | usage(fresh, 500, read)


def test_r08_the_last_message_iteration_counts() -> None:
    signals = reading(with_iterations(entry("message", 3, 44_000), entry("message", 4, 48_000)))
    assert counts(signals) == (48_504, 4, 500, 48_000)


def test_r08_a_fallback_message_counts_too() -> None:
    frame = with_iterations(entry("message", 3, 44_000), entry("fallback_message", 4, 48_000))
    assert reading(frame).used_tokens == 48_504


@pytest.mark.parametrize("kind", ["compaction", "advisor_message", "later_kind"])
def test_r08_an_iteration_of_another_type_never_counts(kind: str) -> None:
    frame = with_iterations(entry("message", 3, 44_000), entry(kind, 9, 190_000))
    assert reading(frame).used_tokens == 44_503


@pytest.mark.parametrize("entries", [(), (5, "x"), (entry("compaction", 1, 2),), ({},)])
def test_r08_a_list_without_such_entries_leaves_the_top_level(entries: tuple[object, ...]) -> None:
    assert counts(reading(with_iterations(*entries))) == (93_507, 7, 1_500, 92_000)


def test_a_percentage_that_floats_cannot_have_is_rounded_once() -> None:
    tokens = 9_000 - 9_007_199_254_740_991
    assert used_percent(tokens, 9_000) == float(Fraction(tokens * 10_000 // 9_000, 100))


@given(st.integers(-(2**53), 2**53), st.integers(1, 2**53))
def test_a_percentage_is_floored_to_two_decimals_however_large_it_is(
    tokens: int, window: int
) -> None:
    assert used_percent(tokens, window) == float(Fraction(tokens * 10_000 // window, 100))


def test_r07_what_is_cached_for_an_hour_is_counted_apart() -> None:
    by_age = {"ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 1_500}
    body = plain(usage(1, 2_000, 3) | {"cache_creation": by_age})
    assert one(Given().take(body), ContextReading).cache_creation_1h_tokens == 1_500
    body = plain(usage(1, 2_000, 3))
    assert one(Given().take(body), ContextReading).cache_creation_1h_tokens is None


@pytest.mark.parametrize(
    ("body", "output"),
    [
        (token_count({"input_tokens": 9, "output_tokens": 7}, 9), 7),
        ({"object": "response", "usage": {"input_tokens": 9, "output_tokens": 7}}, 7),
        ({"type": "message", "role": "assistant", "usage": usage(9, output=7)}, 7),
        (line(assistant("a", fresh=9, output=7)), None),  # another line of it may come
        (assistant("a", fresh=9, output=7), None),
    ],
)
def test_a_reading_has_its_output_where_that_is_final(body: Body, output: int | None) -> None:
    given = Given()
    assert one(given.take(body, hint=SESSION), ContextReading).output_tokens == output


@pytest.mark.parametrize(
    ("reported", "tier"),
    [
        ({"service_tier": "standard"}, None),
        ({"service_tier": "priority"}, "priority"),
        ({"service_tier": "Flex"}, "flex"),
        ({"service_tier": "standard", "speed": "standard"}, None),
        ({"service_tier": "standard", "speed": "fast"}, "fast"),
        ({"service_tier": 5}, None),
        ({}, None),
    ],
)
def test_r7_a_reading_has_the_service_tier_that_is_not_the_standard_one(
    reported: dict[str, object], tier: str | None
) -> None:
    body = assistant(inside={"usage": {**usage(1, 0, 3), **reported}})
    assert one(Given().take(body), ContextReading).service_tier == tier


def test_r7_a_bare_response_has_the_service_tier_next_to_its_usage() -> None:
    body: Body = {"object": "response", "id": "resp_1", "model": "gpt-5", "service_tier": "flex"}
    body |= {"usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}}}
    assert one(Given().take(body, hint="r"), ContextReading).service_tier == "flex"
