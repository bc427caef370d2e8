"""Reads the sessions of paths, and compares them under other settings."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from contextgauge.compaction.reading.transcripts import read_conversation
from contextgauge.errors import ConfigError
from contextgauge.normalise import session_of
from schemas.records import MAIN_CHAIN, Record
from streams import codec, wiring
from streams.cli.screen.figures import safe
from streams.cli.screen.lines import write_error
from streams.cli.transcripts import Replay
from streams.cli.whatif.settings_of_options import WhatIf
from streams.core.derivation.rules_config import Rules
from streams.core.whatif.answers import WhatIfAnswer, answer_of, priced
from streams.core.whatif.compaction_facts import FactPool
from streams.core.whatif.comparison import ChainComparison
from streams.core.whatif.copies import without_copies
from streams.core.whatif.replay import After
from streams.core.whatif.turns import ChainLog, LogReader
from streams.edge.files.content import DamagedError
from streams.edge.files.names import name_of
from streams.edge.files.opening import read_whole
from streams.edge.files.watch import InputSource, find_file
from streams.flow.whatif.engine_after import EngineAfter

_HEAD_LINES: Final = 50
"""In so many lines a transcript names its session."""


def compare(sources: Sequence[InputSource], wanted: WhatIf) -> WhatIfAnswer:
    """Derive the sources, and compare their chains."""
    settings = wiring.settings()
    rules = wiring.rules(settings, content=True)
    replayed = Replay(sources, as_on_this_machine=True, rules=rules)
    logs, kinds = _read(replayed.records())
    thresholds = wanted.thresholds or rules.thresholds
    again = None
    if wanted.window is not None or wanted.thresholds is not None:
        again = _derived_again(sources, logs, rules, wanted.window, thresholds)
    prices = priced(wiring.prices(settings))
    comparison = ChainComparison(FactPool(logs), wanted.settings, prices, thresholds)
    engines = _Engines(sources if any(wanted.strategies) else (), wanted)
    chains = [comparison.of(log, engines.of(log)) for log in logs]
    return answer_of(wanted.settings, chains, kinds, again, is_whole=not replayed.unreadable)


def _read(blocks: Iterable[Sequence[Record]]) -> tuple[list[ChainLog], Counter[str]]:
    reader, kinds = LogReader(), Counter[str]()
    for records in blocks:
        reader.add(records)
        kinds.update(each.kind for each in records if each.data.inherited is not True)
    return without_copies(reader.logs()), kinds


def _derived_again(
    sources: Sequence[InputSource],
    logs: Sequence[ChainLog],
    rules: Rules,
    window: int | None,
    thresholds: tuple[int, ...],
) -> Mapping[str, int]:
    """Derive with other windows and thresholds, and count the records of each kind."""
    windows = dict(rules.configured_windows)
    if window is not None:
        models = {turn.model for log in logs for turn in log.turns}
        windows |= {model: window for model in models if model is not None}
    other = replace(rules, thresholds=thresholds, configured_windows=windows)
    replayed = Replay(sources, as_on_this_machine=True, rules=other, report=lambda _: None)
    return _read(replayed.records())[1]


class _Engines:
    """What the engine would leave of main chains, by the transcripts that they are in."""

    def __init__(self, sources: Iterable[InputSource], wanted: WhatIf) -> None:
        self._wanted = wanted
        self._paths = {
            session: str(source.path)
            for source in sources
            if source.path is not None
            and name_of(str(source.path)).is_main
            and (session := _session_in(str(source.path), source.session)) is not None
        }

    def of(self, log: ChainLog) -> Sequence[After | None]:
        """Return it for each setting; None for one without a strategy, and without messages."""
        path = self._paths.get(log.session_id) if log.chain == MAIN_CHAIN else None
        if path is None:
            return [None] * len(self._wanted.settings)
        try:
            everything = read_conversation(_bytes_of(path)).everything
        except ConfigError as error:
            write_error(f"{safe(path)}: not compacted again: {safe(str(error))}\n")
            return [None] * len(self._wanted.settings)
        return [
            None if each is None else EngineAfter(log, everything, each, self._wanted.window)
            for each in self._wanted.strategies
        ]


def _session_in(path: str, named: str | None) -> str | None:
    """Return the session that the first lines of a transcript name; else the one of its name."""
    for line in _bytes_of(path).splitlines()[:_HEAD_LINES]:
        try:
            body = codec.loads(line)
        except ValueError:
            continue
        session = session_of(body, None) if isinstance(body, dict) else None
        if session is not None:
            return session
    return named


def _bytes_of(path: str) -> bytes:
    """Return a transcript's content; nothing for one that cannot be read, which was reported."""
    file = find_file(path)
    try:
        return b"" if file is None else read_whole(file.place)
    except (DamagedError, OSError):
        return b""
