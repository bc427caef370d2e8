"""A window is known by a model's name only where the maker of the model serves it."""

import pytest

from contextgauge.normalise.served_models import served_model
from schemas.records import ContextLimits, ContextReading
from tests.core.given import Body, Given, every, limits
from tests.runtimes.pi_captures import answered, entry, head, usage
from tests.runtimes.test_cline_tasks import TASK, request

SONNET = "claude-sonnet-5"


def pi(provider: str) -> list[Body]:
    return [
        head(),
        entry("model_change", "m1", None, 10, provider=provider, modelId=SONNET),
        answered("a1", "m1", 11, usage(10), provider=provider, model=SONNET),
    ]


def cline(provider: str, model_id: str = SONNET) -> list[Body]:
    model = {"providerId": provider, "modelId": model_id, "mode": "act"}
    return [TASK, request(1, 12, 0, modelInfo=model)]


@pytest.mark.parametrize(
    ("bodies", "model", "window"),
    [
        (pi("anthropic"), SONNET, 200_000),
        (pi("github-copilot"), f"github-copilot:{SONNET}", None),
        (pi("openai-codex"), f"openai-codex:{SONNET}", None),
        (cline("anthropic"), SONNET, 200_000),
        (cline("vscode-lm"), f"vscode-lm:{SONNET}", None),
        (cline("openrouter", f"anthropic/{SONNET}"), f"openrouter:anthropic/{SONNET}", None),
    ],
)
def test_what_a_provider_in_between_allows_is_unknown(
    bodies: list[Body], model: str, window: int | None
) -> None:
    given = Given()
    given.take(*bodies, hint="s")
    assert every(given.records, ContextReading)[-1].model == model
    assert limits(every(given.records, ContextLimits)[-1])[0] == window


def test_a_model_without_a_provider_keeps_its_name() -> None:
    assert served_model(SONNET, None) == SONNET
    assert served_model(None, "github-copilot") is None
