"""The check of the transcripts on this machine, where there are any."""

from collections.abc import Iterator

from streams.flow.doctor.facts import Expected, Facts, known
from streams.flow.doctor.findings import Result, check, ok, warning

_NAMED = 5


@check("transcripts.readable")
def readable(facts: Facts, expected: Expected) -> Iterator[Result]:  # noqa: ARG001 -- as the others
    """A session whose file cannot be read is missing in all views of this machine's sessions."""
    here = known(facts.transcripts)
    for path, reason in list(here.unreadable.items())[:_NAMED]:
        yield warning(
            reason,
            "Let this user read the file, or move it away if its runtime does not write it again",
            path,
        )
    if len(here.unreadable) > _NAMED:
        more = len(here.unreadable) - _NAMED
        yield warning(f"{more:,} more cannot be read", "`contextgauge sessions` names each")
    if not here.files:
        yield ok("no transcripts on this machine")
    elif not here.unreadable:
        of = "" if here.looked == here.files else f" of {here.files:,}, those that changed last"
        yield ok(f"{here.looked:,} transcripts on this machine can be read{of}")


CHECKS = (readable,)
