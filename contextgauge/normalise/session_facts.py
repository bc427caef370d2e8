"""Facts of a session, on a transcript's lines and in an `init`: runtime, version, folder."""

from contextgauge.normalise.fields import long_name, mapping, name, text
from contextgauge.normalise.limit_signals import ModelReport
from contextgauge.normalise.runtimes import VERSIONS, of_init, of_transcript
from contextgauge.normalise.signals import Body, SessionFacts, Signal
from contextgauge.normalise.spellings import COMMON, is_transcript
from contextgauge.record_words import Runtime


def transcript_facts(body: Body, *, only_new: bool) -> tuple[SessionFacts, ...]:
    """Return the facts of the session on a transcript line.

    `only_new` is for a subagent's line, whose folder is its own, and for a line that says
    nothing else, of which there are thousands: they fill what is not known and change nothing.
    """
    if not is_transcript(body):
        return ()
    runtime, cwd = of_transcript(body), long_name(body, "cwd")
    version = None if runtime is None else name(body, "version")
    return facts_of(runtime, version, cwd, _forked_from(body), only_new=only_new)


def facts_of(
    runtime: Runtime | None,
    version: str | None,
    cwd: str | None,
    forked: str | None,
    *,
    only_new: bool,
) -> tuple[SessionFacts, ...]:
    """Return the facts of a session, if there are any."""
    if runtime is None and cwd is None and forked is None:
        return ()
    return (SessionFacts(runtime, version, None, cwd, forked, only_new),)


def _forked_from(body: Body) -> str | None:
    origin = mapping(body, "forked_from", "forkedFrom")
    if origin is not None:
        return long_name(origin, *COMMON.session)
    return long_name(body, "forked_from", "forkedFrom")


def is_copy(body: Body) -> bool | None:
    """Return whether a line says that it is copied from another session; None: it does not say."""
    origin = mapping(body, "forked_from", "forkedFrom")
    if origin is None or long_name(origin, *COMMON.session) in (None, text(body, *COMMON.session)):
        return None
    return True


def init_facts(body: Body) -> tuple[Signal, ...]:
    """Return what `system/init` says of the session, and the main chain's model."""
    model = name(body, "model")
    facts = SessionFacts(
        of_init(body),
        name(body, *VERSIONS),
        model,
        long_name(body, "cwd"),
        _forked_from(body),
        only_new=False,
    )
    signals: list[Signal] = [facts]
    if model is not None:
        signals.append(ModelReport(model, is_init=True))
    return tuple(signals)
