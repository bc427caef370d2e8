"""The next compaction in words at the terminal: how far it is, and where that is known from."""

from collections.abc import Callable, Iterator, Mapping

from rich.text import Text

from schemas.views import ChainView
from streams.cli.screen.figures import GUESS, UNKNOWN, exact, roughly, safe, tokens_left
from streams.core.until_compaction import PointSource, UntilCompaction, WindowDoubt

_POINT_SOURCES: Mapping[PointSource, str] = {
    "reported": "",
    "configured": " · configured",
    "settings": "",
    "learned_session": " · estimated from this session",
    "learned_model": " · estimated from this model",
}


_NO_POINT = "no threshold was reported, and no compaction of this model shows it"


def until_words(until: UntilCompaction | None, figure: Callable[[int], str], unit: str = "") -> str:
    """Return the tokens until compaction: 22,997, ~67,094 if estimated, `due, 131K over`."""
    if until is None or until.tokens is None:
        return UNKNOWN
    return tokens_left(until.tokens, figure, unit, estimated=until.estimated)


def next_compaction(
    chain: ChainView,
    until: UntilCompaction | None,
    doubt: WindowDoubt | None,
    switched_off_by: str | None,
) -> Iterator[tuple[str, Text]]:
    """Yield the named facts: how far the next compaction is, or what switched it off; growth."""
    if switched_off_by is not None or chain.auto_compact_enabled is False:
        by = "reported by the runtime" if switched_off_by is None else f"from {switched_off_by}"
        yield "Compaction", Text(f"off · {safe(by)}")
    elif until is None:
        yield "Compacts in", Text(f"{UNKNOWN} · {_NO_POINT}")
    elif until.tokens is None:
        mark = GUESS if until.estimated else ""
        point = f"at {mark}{exact(until.threshold_tokens)} tokens"
        yield "Compacts in", Text(f"{UNKNOWN} · the size is not measured; {point}")
    else:
        source = _POINT_SOURCES[until.source]
        if until.setting is not None:
            source = f" · from {safe(until.setting)}"
        if until.source == "configured" and until.estimated:
            source += f", of {'an assumed' if doubt == 'assumed' else 'a doubtful'} window"
        title = "Compacts in" if until.tokens > 0 else "Compaction"
        yield title, Text(f"{until_words(until, exact, ' tokens')}{source}")
    if chain.growth_tokens is not None:
        number = len(chain.differences)
        mean = f", mean of the last {number}" if number > 1 else ""
        growth = f"{exact(chain.growth_tokens)} tokens a response{mean}"
        yield "Growth", Text(f"{growth}{_left(chain, until)}")


def _left(chain: ChainView, until: UntilCompaction | None) -> str:
    """Return about how many responses are left, and until what; nothing where none is."""
    left, what = chain.responses_left, "the window is full"
    if until is not None and until.responses is not None:
        left, what = until.responses, "compaction"
    is_due = until is not None and until.tokens is not None and until.tokens <= 0
    if left is None or left < 0 or is_due:
        return ""
    return f" · {roughly(left)} more until {what}" if left else f" · {what} with the next response"
