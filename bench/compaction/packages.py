"""The packages that are compared, in environments of their own (`make bench-setup`)."""

import json
import os
import subprocess
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.compaction.contenders import Contender, Limits, Round, Run, Runner
from bench.compaction.diligent import of_user
from bench.compaction.facts import Conversation
from contextgauge.compaction import read_messages, write_messages

_BENCH: Final = Path(__file__).parent.parent


class Package(NamedTuple):
    """A rule of a package: its name in `peers`, and the environment that has it."""

    title: str
    rule: str
    package: str
    environment: Path

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return self.environment / "bin" / "python"

    def version(self) -> str | None:
        """Return the installed version, None without the package."""
        libraries = [str(each) for each in self.environment.glob("lib/python*/site-packages")]
        versions = (each.version for each in distributions(name=self.package, path=libraries))
        return next(versions, None)


_QUIET: Final = {
    "HEADROOM_TELEMETRY": "off",
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LOG_LEVEL": "ERROR",
    "OPENHANDS_SUPPRESS_BANNER": "1",
}
"""No package looks anything up or prints what is no result."""

_MAIN, _OPENHANDS = _BENCH / ".venv", _BENCH / "compaction" / ".venv"

PACKAGES: Final = (
    Package("{} trim_messages", "trim", "langchain", _MAIN),
    Package("{} SummarizationMiddleware + diligent", "summarise", "langchain", _MAIN),
    Package("{} condenser + diligent", "condense", "openhands-sdk", _OPENHANDS),
    Package("{} condenser, shown whole events", "condense-whole", "openhands-sdk", _OPENHANDS),
    Package("{}", "compress", "headroom-ai", _MAIN),
)


def package_contenders() -> tuple[list[Contender], list[str]]:
    """Return the installed packages as contenders, and why others are left out."""
    contenders: list[Contender] = []
    missing: list[str] = []
    for each in PACKAGES:
        if (version := each.version()) is None:
            missing.append(f"{each.package} is not installed: run `make bench-setup`")
        else:
            contenders.append(
                Contender(each.title.format(f"{each.package} {version}"), _runner(each))
            )
    return contenders, missing


def _runner(package: Package) -> Runner:
    def run(cases: Sequence[tuple[Conversation, Limits]]) -> list[Run]:
        request = [
            {
                "messages": write_messages(conversation.messages, "openai-chat"),
                "trigger": limits.trigger,
                "goal": limits.goal,
            }
            for conversation, limits in cases
        ]
        done = subprocess.run(
            [str(package.python), "-m", "bench.compaction.peers", package.rule],
            input=json.dumps(request),
            env={**os.environ, "PYTHONPATH": str(_BENCH.parent), **_QUIET},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return [_run(json.loads(line)) for line in done.stdout.splitlines()]

    return run


def _run(answer: Any) -> Run:
    rounds = [Round(read_messages(context, "openai-chat"), ms) for context, ms in answer["rounds"]]
    context = read_messages(answer["context"], "openai-chat")
    summaries = [each.text for each in context if each.role == "user" and "User: " in each.text]
    return Run(rounds, context, "\n".join(map(of_user, summaries)))
