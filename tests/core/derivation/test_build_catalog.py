"""The catalog's build script: which table wins, and how many names become few prefixes."""

import json
from pathlib import Path

import pytest

from tools.build_catalog import SEED_ROWS, Limits, build, collapse, read_litellm, read_models_dev


@pytest.fixture
def litellm(tmp_path: Path) -> Path:
    """A table in litellm's shape."""
    rows = {
        "gpt-5": ("openai", "chat", 272_000),
        "gpt-5-2025-08-07": ("openai", "chat", 272_000),
        "gpt-7": ("openai", "responses", 500_000),
        "gpt-7-image": ("openai", "image_generation", 1_000),
        "gpt-7-audio": ("openai", "chat", 1_000),
        "vertex_ai/claude-new-9@default": ("vertex_ai-anthropic_models", "chat", 900_000),
        "other/gpt-8": ("elsewhere", "chat", 1_000),
        "claude-untold": ("anthropic", "chat", None),
    }
    path = tmp_path / "prices.json"
    table = {
        name: {"litellm_provider": provider, "mode": mode, "max_input_tokens": tokens}
        for name, (provider, mode, tokens) in rows.items()
    }
    path.write_text(json.dumps(table))
    return path


@pytest.fixture
def models_dev(tmp_path: Path) -> Path:
    """A checkout in models.dev's shape."""
    folder = tmp_path / "models.dev"
    for name, text in {
        "providers/openai/models/gpt-5.toml": 'base_model = "openai/gpt-5"\n[limit]\noutput = 7',
        "models/openai/gpt-5.toml": "[limit]\ncontext = 400_000\ninput = 272_000\noutput = 1",
        "providers/openai/models/gpt-5-mini.toml": "[limit]\ncontext = 400_000\ninput = 272_000",
        "providers/openai/models/gpt-5-chat-latest.toml": "[limit]\ncontext = 128_000",
        "providers/openai/models/gpt-image-1.toml": "[limit]\ncontext = 0",
        "providers/google/models/gemini-embedding-001.toml": "[limit]\ncontext = 2_048",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_conversation_models_are_read_without_dates_and_vendors(litellm: Path) -> None:
    assert read_litellm(litellm) == {
        "gpt-5": Limits(272_000, None, None, "litellm"),
        "gpt-7": Limits(500_000, None, None, "litellm"),
        "claude-new-9": Limits(900_000, None, None, "litellm"),
    }


def test_a_model_inherits_missing_limits_from_its_base(models_dev: Path) -> None:
    assert read_models_dev(models_dev) == {
        "gpt-5": Limits(400_000, 272_000, 7, "models.dev"),
        "gpt-5-mini": Limits(400_000, 272_000, None, "models.dev"),
        "gpt-5-chat": Limits(128_000, None, None, "models.dev"),
    }


def test_the_better_table_wins_and_equal_names_collapse(litellm: Path, models_dev: Path) -> None:
    text = build(litellm, models_dev)
    assert build(litellm, models_dev) == text
    rows = {row["prefix"]: row for row in json.loads(text)["rows"]}
    assert (rows["gpt-5"]["context"], rows["gpt-5"]["source"]) == (400_000, "models.dev")
    assert rows["gpt-5-chat"]["context"] == 128_000
    assert "gpt-5-mini" not in rows
    assert rows["gpt-7"]["source"] == "litellm"
    assert rows["gpt-4"]["context"] == SEED_ROWS["gpt-4"].context


def test_only_the_next_shorter_prefix_counts() -> None:
    def limits(context: int) -> Limits:
        return Limits(context, None, None, "test")

    rows = {"a": limits(1), "a-b": limits(2), "a-b-c": limits(1), "a-b-d": limits(2)}
    assert list(collapse(rows)) == ["a", "a-b", "a-b-c"]
