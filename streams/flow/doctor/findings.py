"""What a check is, and what it returns.

A check is a function of the facts that yields one result for each thing that it examines (the one
Redis server, each topic, each partition). Where all results are `ok`, they become one finding;
otherwise the others are reported. Where a fact that it needs is unknown (`UnknownFactError`), the
check is skipped, and no other check is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from streams.flow.doctor.facts import Expected, Facts, UnknownFactError

Severity: TypeAlias = Literal["error", "warning", "note", "skipped", "ok"]
"""`error`: something does not work, or data is lost; `warning`: it works, but will cause trouble;
`note`: good to know; `skipped`: it could not be examined."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note", "skipped", "ok")
"""The worst first."""

Figures: TypeAlias = Mapping[str, float | str | None]
"""Values for programs: counts, milliseconds, bytes, names."""


class Result(NamedTuple):
    """What a check reports about one thing; `subject` is the topic, address or partition."""

    severity: Severity
    message: str
    remedy: str = ""
    subject: str = ""
    figures: Figures = MappingProxyType({})


error = partial(Result, "error")
warning = partial(Result, "warning")
note = partial(Result, "note")


def skipped(reason: str, *, subject: str = "", figures: Figures = MappingProxyType({})) -> Result:
    """Return the result for what could not be examined."""
    return Result("skipped", reason, "", subject, figures)


def ok(message: str, figures: Figures = MappingProxyType({})) -> Result:
    """Return the result for what is as it should be."""
    return Result("ok", message, figures=figures)


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check."""

    check: str
    why: str
    severity: Severity
    message: str
    remedy: str = ""
    subject: str = ""
    figures: Figures = field(default_factory=lambda: MappingProxyType({}))


Examination: TypeAlias = Callable[[Facts, Expected], Iterator[Result]]


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the catalogue: its id, why it matters, and its function."""

    name: str
    why: str
    results: Examination

    def examine(self, facts: Facts, expected: Expected) -> list[Finding]:
        """Return the findings, at least one, the worst first."""
        try:
            results = list(self.results(facts, expected))
        except UnknownFactError as unknown:
            results = [skipped(str(unknown))]
        problems = [result for result in results if result.severity != "ok"]
        problems.sort(key=lambda result: SEVERITIES.index(result.severity))
        return [Finding(self.name, self.why, *item) for item in problems or [_fine(results)]]


def _fine(results: list[Result]) -> Result:
    """Return one result for several that are ok, with the figures that they share."""
    shared = set.intersection(*[set(result.figures.items()) for result in results])
    return ok(results[0].message, dict(shared))


def check(name: str) -> Callable[[Examination], Check]:
    """Make a check of a function; its docstring says why the check matters."""

    def made(results: Examination) -> Check:
        return Check(name, results.__doc__ or "", results)

    return made
