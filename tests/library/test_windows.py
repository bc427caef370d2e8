"""The window catalog: which row a model's name finds, and what the bundled rows say."""

import json

import pytest

from contextgauge.window_catalog import bundled
from contextgauge.windows import Catalog, base_name, plain_name
from tools.build_catalog import TARGET


def row(prefix: object, context: object = 1_000, **more: object) -> dict[str, object]:
    return {"prefix": prefix, "context": context, "source": "test", **more}


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4", 8_192),
        ("gpt-4-0613", 8_192),
        ("gpt-4-32k", 32_768),
        ("gpt-4-0125-preview", 128_000),
        ("gpt-4-1106-preview", 128_000),
        ("gpt-4-turbo-2024-04-09", 128_000),
        ("gpt-4o", 128_000),
        ("gpt-4o-mini", 128_000),
        ("ft:gpt-4o-2024-08-06:org::id", 128_000),
        ("gpt-4.1-mini", 1_047_576),
        ("gpt-5", 400_000),
        ("gpt-5-2025-08-07", 400_000),
        ("openai/gpt-5.2-codex", 400_000),
        ("o1-mini", 128_000),
        ("o3", 200_000),
        ("o4-mini-2025-04-16", 200_000),
        ("claude-3-haiku-20240307", 200_000),
        ("claude-3-5-sonnet-20241022", 200_000),
        ("us.anthropic.claude-3-7-sonnet-20250219-v1:0", 200_000),
        ("anthropic/claude-3.7-sonnet", 200_000),
        ("claude-opus-4-1-20250805", 200_000),
        ("claude-opus-4@20250514", 200_000),
        ("claude-opus-4-5", 200_000),
        ("claude-opus-4-6", 200_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("claude-haiku-4-5", 200_000),
        ("CLAUDE-SONNET-5", 1_000_000),
        ("claude-opus-4-8", 1_000_000),
        ("claude-sonnet-4-5[1m]", 1_000_000),
        ("gemini-1.5-pro-002", 2_000_000),
        ("gemini-1.5-flash", 1_000_000),
        ("models/gemini-2.5-pro", 1_048_576),
        ("publishers/google/models/gemini-3-pro-preview", 1_048_576),
        ("gemini-2.5-flash-image", 32_768),
    ],
)
def test_a_known_model_has_its_window(model: str, window: int) -> None:
    assert bundled().window(model) == window


@pytest.mark.parametrize(
    "model", ["", "gpt-45", "gpt-4.9", "gpt-4x", "claude", "llama-3", "-", "/"]
)
def test_a_prefix_ends_where_a_name_does(model: str) -> None:
    assert bundled().window(model) is None


def test_the_longest_prefix_wins() -> None:
    catalog = Catalog.from_rows([row("a", 1), row("a-b-c", 3), row("a-b", 2)])
    assert [catalog.window(name) for name in ("a", "a-x", "a-b", "a-b-x", "a-b-c-d", "ab")] == [
        1, 1, 2, 2, 3, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "split"),
    [
        ("claude-sonnet-4-5[1m]", ("claude-sonnet-4-5", 1_000_000)),
        ("x[2M]", ("x", 2_000_000)),
        ("x[200k]", ("x", 200_000)),
        ("x", ("x", None)),
        ("x[1g]", ("x[1g]", None)),
        ("x[0m]", ("x[0m]", None)),
        ("x[m]", ("x[m]", None)),
        ("[1m]", ("", 1_000_000)),
        ("x[1m]-b", ("x[1m]-b", None)),
    ],
)
def test_a_suffix_determines_the_window(model: str, split: tuple[str, int | None]) -> None:
    assert base_name(model) == split


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("us.anthropic.claude-sonnet-4.5-20250929", "claude-sonnet-4-5-20250929"),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06"),
        ("claude-opus-4@20250514", "claude-opus-4@20250514"),
        ("claude-opus-4-6-ann", "claude-opus-4-6…"),
        ("gpt-4o-2147483647:ann", "gpt-4o…"),
        ("gpt-4o-12b", "gpt-4o…"),
        ("ann", None),
    ],
)
def test_a_public_name_has_nothing_of_a_deployment(model: str, name: str | None) -> None:
    assert bundled().public_name(model) == name


def test_names_are_normalised_across_vendors() -> None:
    assert plain_name("global.anthropic.claude-opus-4-1-v1:0") == "claude-opus-4-1-v1:0"
    assert plain_name("us-gov.anthropic.claude-3") == "claude-3"
    assert plain_name("vertex_ai/Claude-Opus-4.5") == "claude-opus-4-5"
    assert plain_name("gpt-4.1") == "gpt-4.1"
    provided = "openrouter:anthropic/claude-opus-4.5"
    assert plain_name(provided) == provided


def test_the_digest_changes_with_a_window_and_with_nothing_else() -> None:
    one = Catalog.from_rows([row("a", 1), row("b", 2)])
    assert Catalog.from_rows([row("b", 2, source="x", output=5), row("a", 1)]).digest == one.digest
    assert Catalog.from_rows([row("a", 1), row("b", 3)]).digest != one.digest


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (row("A"), "plain lower-case"),
        (row(""), "plain lower-case"),
        (row(5), "plain lower-case"),
        (row("a", None), "is not a count"),
        (row("a", 0), "is not a count"),
        (row("a", context=True), "is not a count"),
    ],
)
def test_a_wrong_row_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Catalog.from_rows([wrong])


def test_a_prefix_is_there_once() -> None:
    with pytest.raises(ValueError, match="two rows"):
        Catalog.from_rows([row("a"), row("a")])


def test_every_bundled_row_names_its_source_and_is_found_by_its_own_prefix() -> None:
    catalog, rows = bundled(), json.loads(TARGET.read_bytes())["rows"]
    assert {row["source"] for row in rows} == {"seed", "litellm", "models.dev"}
    assert all(catalog.window(row["prefix"]) == row["context"] for row in rows)
    assert next(row for row in rows if row["prefix"] == "gpt-5")["input"] == 272_000


def test_a_name_of_any_length_is_looked_up_cheaply() -> None:
    catalog = Catalog.from_rows([{"prefix": "m", "context": 5, "source": "test"}])
    assert catalog.window("-" * 1_000_000) is None
    assert catalog.window("m" + "-" * 1_000_000) == 5


def test_answers_are_forgotten_before_they_are_too_many() -> None:
    catalog = Catalog.from_rows([{"prefix": "m", "context": 5, "source": "test"}])
    for number in range(1_000):
        assert catalog.window(f"m-{number}") == 5
    assert catalog.window("m-1") == 5
