"""Windows in words at the terminal: how large, where known from, how doubtful, why unknown."""

from collections.abc import Callable, Mapping

from schemas.records import WindowSource
from schemas.views import ChainView, SessionView
from streams.cli.screen.figures import GUESS, UNKNOWN, exact, percent, remaining, thousands
from streams.core.session_status import status_of
from streams.core.until_compaction import WindowDoubt

SOURCE_WORDS: Mapping[WindowSource, str] = {
    "configured": "configured",
    "runtime": "reported",
    "catalog": "by model name",
    "default": "assumed",
    "unknown": UNKNOWN,
}
"""Sources of windows as people call them, the same on every screen; JSON has those of records."""

_DOUBT_WORDS: Mapping[WindowDoubt | None, str] = {
    None: "",
    "assumed": "",  # its source says so
    "contradicted": ", doubtful: automatic compactions come far below it",
}


def guess(figure: str, *, doubtful: bool) -> str:
    """Return a figure, marked if it rests on a doubtful window."""
    return f"{GUESS}{figure}" if doubtful and figure != UNKNOWN else figure


def is_doubtful(view: SessionView, chain: ChainView) -> bool:
    """Return whether a chain's window is assumed, or contradicted by its compactions."""
    return chain.chain in status_of(view).window_doubts


def used_and_remaining(used_percent: float, *, doubtful: bool) -> str:
    """Return how full a window is, the same everywhere: 62% used · 38% context remaining."""
    left = guess(remaining(used_percent), doubtful=doubtful)
    return f"{guess(percent(used_percent), doubtful=doubtful)} used · {left} context remaining"


def window_words(chain: ChainView, *, doubtful: bool) -> str:
    """Return a chain's window: 200K, ~200K where it is a guess."""
    return guess(thousands(chain.window), doubtful=doubtful)


def no_window(chain: ChainView, figure: Callable[[int], str]) -> str:
    """Return why a window is unknown, as on every screen; `unknown` where that is not known."""
    if chain.window_source != "exceeded":
        return UNKNOWN
    passed = "one" if chain.passed_window is None else figure(chain.passed_window)
    return f"{UNKNOWN}: the size passed the assumed {passed}"


def window_and_source(chain: ChainView, doubt: WindowDoubt | None) -> str:
    """Return a chain's window in full, with its source and what is doubtful of it."""
    if chain.window is None:
        return no_window(chain, exact)
    source = "" if chain.window_source is None else f" · {SOURCE_WORDS[chain.window_source]}"
    window = guess(exact(chain.window), doubtful=doubt is not None)
    return f"{window} tokens{source}{_DOUBT_WORDS[doubt]}"
