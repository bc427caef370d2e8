"""What each question of the report should answer, computed from records without SQL."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby, pairwise
from math import floor
from statistics import mean, median
from typing import Any, NamedTuple

from contextgauge.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionStart,
    CompactionTiming,
    ContextExhausted,
    ContextLimits,
    ContextReading,
    ContextWarning,
    Record,
    SessionInfo,
)

Row = tuple[Any, ...]
MINUTE_MS = 60_000


class Compacted(NamedTuple):
    """A boundary with what other records add to it."""

    record: Record
    boundary: CompactBoundary
    start: CompactionStart | None
    complete: CompactionComplete | None
    duration_ms: int | None
    source: str | None

    @property
    def wait_ms(self) -> int | None:
        return None if self.source == "precomputed" else self.duration_ms

    @property
    def left(self) -> float | None:
        if self.complete is None or self.complete.tokens_after is None:
            return None
        before = self.complete.tokens_before
        return 100 * self.complete.tokens_after / before if before else None


def rounded(value: float | None, digits: int = 0) -> float | None:
    return None if value is None else floor(value * 10**digits + 0.5) / 10**digits


def average(values: Iterable[float | None], digits: int = 0) -> float | None:
    known = [each for each in values if each is not None]
    return rounded(mean(known), digits) if known else None


def middle(values: Iterable[float | None], digits: int = 0) -> float | None:
    known = [each for each in values if each is not None]
    return rounded(median(known), digits) if known else None


def high(values: Iterable[float | None], share: float, digits: int = 0) -> float | None:
    known = sorted(each for each in values if each is not None)
    if not known:
        return None
    at = share * (len(known) - 1)
    low = floor(at)
    upper = known[min(low + 1, len(known) - 1)]
    return rounded(known[low] + (upper - known[low]) * (at - low), digits)


def total(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def known(values: Iterable[object]) -> int:
    return sum(each is not None for each in values)


def day_of(record: Record) -> str | None:
    if record.time_ms is None:
        return None
    day = datetime.fromtimestamp(record.time_ms / 1_000, UTC)
    return f"{day.day} {day:%b %Y}"


def minute_of(record: Record) -> str:
    if record.time_ms is None:
        return "unknown"
    return f"{day_of(record)}, {datetime.fromtimestamp(record.time_ms / 1_000, UTC):%H:%M}"


def in_bins(
    values: Iterable[float | None], names: Sequence[str], ends: Sequence[float]
) -> Counter[str]:
    """Count values by bin; `ends` are those of all bins but the last."""
    counts: Counter[str] = Counter()
    for value in values:
        if value is not None:
            counts[names[sum(value >= end for end in ends)]] += 1
    return counts


class Expected:
    """The answers for records, each as rows in the order of the question's columns."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.all = records
        self.own = [each for each in records if not each.data.inherited]
        starts = {each.id: each.data for each in records if isinstance(each.data, CompactionStart)}
        completes = {
            each.data.boundary_id: each.data
            for each in records
            if isinstance(each.data, CompactionComplete)
        }
        timings = {
            each.data.boundary_id: each.data
            for each in records
            if isinstance(each.data, CompactionTiming)
        }
        self.compactions: list[Compacted] = []
        for record in self.own:
            data = record.data
            if isinstance(data, CompactBoundary):
                timing = timings.get(record.id)
                late = data.duration_ms is None and timing is not None
                self.compactions.append(
                    Compacted(
                        record,
                        data,
                        starts.get(data.attempt_id or ""),
                        completes.get(record.id),
                        timing.duration_ms if late and timing else data.duration_ms,
                        timing.duration_source if late and timing else data.duration_source,
                    )
                )
        self.readings = [
            (each, each.data) for each in self.own if isinstance(each.data, ContextReading)
        ]
        self.chains: dict[tuple[str, str], list[Record]] = defaultdict(list)
        for record in sorted(self.own, key=lambda each: each.sequence):
            self.chains[record.data.session_id, record.data.chain].append(record)

    def outputs(self) -> dict[str, int | None]:
        """Return each response's output: its own, or what the next reading has of it."""
        outputs: dict[str, int | None] = {}
        for records in self.chains.values():
            readings = [each for each in records if isinstance(each.data, ContextReading)]
            for one, following in zip(readings, [*readings[1:], None], strict=True):
                own = one.data.output_tokens  # type: ignore[union-attr]
                late = following.data.previous_output_tokens if following else None  # type: ignore[union-attr]
                outputs[one.id] = late if own is None else own
        return outputs

    def grouped(self, key: Callable[[Compacted], Any]) -> list[tuple[Any, list[Compacted]]]:
        groups: dict[Any, list[Compacted]] = defaultdict(list)
        for each in self.compactions:
            groups[key(each)].append(each)
        return list(groups.items())

    def by_trigger(
        self,
        values: Callable[[Compacted], float | None],
        names: Sequence[str],
        ends: Sequence[float],
    ) -> list[Row]:
        """Return a histogram: all, automatic, manual, other."""
        kinds: tuple[Callable[[str | None], bool], ...] = (
            lambda _: True,
            lambda trigger: trigger == "auto",
            lambda trigger: trigger == "manual",
            lambda trigger: trigger not in {"auto", "manual"},
        )
        counts = [
            in_bins(
                (values(each) for each in self.compactions if kind(each.boundary.trigger)),
                names,
                ends,
            )
            for kind in kinds
        ]
        return [(name, *(count[name] for count in counts)) for name in names]

    def totals(self) -> list[Row]:
        sessions = {
            each.data.session_id
            for each in self.all
            if isinstance(each.data, SessionInfo)
            or (isinstance(each.data, ContextReading | CompactBoundary) and not each.data.inherited)
        }
        triggers = Counter(each.boundary.trigger for each in self.compactions)
        times = [each.time_ms for each, _ in self.readings if each.time_ms is not None]
        manual, automatic = triggers["manual"], triggers["auto"]
        bounds = [
            f"{datetime.fromtimestamp(each / 1_000, UTC):%Y-%m-%d %H:%M}"
            for each in (min(times), max(times))
        ]
        return [
            (
                len(sessions),
                len(self.readings),
                len(self.compactions),
                automatic,
                manual,
                len(self.compactions) - manual - automatic,
                sum(outcome in {"failed", "blocked"} for outcome, *_ in self._attempts()),
                len({each.boundary.session_id for each in self.compactions}),
                sum((most or 0) >= 80 for most, _ in self._fullest().values()),
                *bounds,
            )
        ]

    def _fullest(self) -> dict[str, tuple[float | None, str]]:
        """Return each session's most percent used and its last window's source, of main chains."""
        fullest: dict[str, tuple[float | None, str]] = {}
        for (session, chain), records in self.chains.items():
            readings = [each.data for each in records if isinstance(each.data, ContextReading)]
            if chain == "main" and readings:
                percents = [each.used_percent for each in readings if each.used_percent is not None]
                fullest[session] = max(percents, default=None), readings[-1].window_source
        return fullest

    def average_compaction(self) -> list[Row]:
        all_ = self.compactions
        sizes = [each.boundary.pre_tokens for each in all_]
        after = [each.complete.tokens_after if each.complete else None for each in all_]
        waits = [each.wait_ms for each in all_]
        lefts = [each.left for each in all_]
        messages = [
            each.boundary.messages_since_last for each in all_ if each.boundary.chain == "main"
        ]
        return [
            (
                len(all_),
                *(known(sizes), average(sizes), middle(sizes)),
                *(known(after), average(after), average(lefts, 1), middle(lefts, 1)),
                *(known(waits), average(waits), middle(waits)),
                *(average(messages, 1), middle(messages, 1)),
            )
        ]

    def tokens_saved(self) -> list[Row]:
        saved = [each.complete for each in self.compactions if each.complete]
        amounts = [each.tokens_saved for each in saved]
        before = total(each.tokens_before for each in saved if each.tokens_saved is not None)
        amount = total(amounts)
        share = rounded(100 * amount / before, 1) if amount is not None and before else None
        return [(len(self.compactions), known(amounts), amount, average(amounts), share)]

    def frequency(self) -> list[Row]:
        rows = []
        for day, group in self.grouped(lambda each: day_of(each.record)):
            triggers = Counter(each.boundary.trigger for each in group)
            other = len(group) - triggers["auto"] - triggers["manual"]
            sessions = len({each.boundary.session_id for each in group})
            if day is not None:
                rows.append(
                    (day, len(group), triggers["auto"], triggers["manual"], other, sessions)
                )
        return rows

    def messages_between_histogram(self) -> list[Row]:
        names = ("< 20", "20-49", "50-99", "100-199", "200-399", "400-799", "800+")
        return self.by_trigger(
            lambda each: (
                each.boundary.messages_since_last if each.boundary.chain == "main" else None
            ),
            names,
            (20, 50, 100, 200, 400, 800),
        )

    def duration_histogram(self) -> list[Row]:
        names = ("< 1 s", "1-10 s", "10-30 s", "30-60 s", "1-2 min", "2-5 min", "> 5 min")
        ends = (1_000, 10_000, 30_000, 60_000, 120_000, 300_000)
        return self.by_trigger(lambda each: each.wait_ms, names, ends)

    def compression_histogram(self) -> list[Row]:
        names = ("< 10%", "10-20%", "20-30%", "30-50%", "50-75%", "75-100%", "100%+")
        return self.by_trigger(lambda each: each.left, names, (10, 20, 30, 50, 75, 100))

    def compactions_by_trigger(self) -> list[Row]:
        return [
            (
                trigger or "unknown",
                len(group),
                rounded(100 * len(group) / len(self.compactions), 1),
                len({each.boundary.session_id for each in group}),
                average(each.boundary.pre_tokens for each in group),
                average(each.wait_ms for each in group),
            )
            for trigger, group in self.grouped(lambda each: each.boundary.trigger)
        ]

    def pre_tokens(self) -> list[Row]:
        rows = []
        for (model, trigger), group in self.grouped(
            lambda each: (each.boundary.model, each.boundary.trigger)
        ):
            sizes = [each.boundary.pre_tokens for each in group]
            some = [each for each in sizes if each is not None]
            ends = (min(some, default=None), average(sizes), middle(sizes), max(some, default=None))
            rows.append((model or "unknown", trigger or "unknown", len(group), len(some), *ends))
        return rows

    def slow_hours(self) -> list[Row]:
        groups: dict[int, list[int]] = defaultdict(list)
        for each in self.compactions:
            if each.wait_ms is not None and each.record.time_ms is not None:
                hour = datetime.fromtimestamp(each.record.time_ms / 1_000, UTC).hour
                groups[hour].append(each.wait_ms)
        return [(hour, len(waits), middle(waits), max(waits)) for hour, waits in groups.items()]

    def durations(self) -> list[Row]:
        rows = []
        for (trigger, source), group in self.grouped(
            lambda each: (each.boundary.trigger, each.source)
        ):
            waits = [each.duration_ms for each in group if each.duration_ms is not None]
            if waits:
                figures = (min(waits), middle(waits), high(waits, 0.95), max(waits), average(waits))
                rows.append((trigger or "unknown", source, len(waits), *figures))
        return rows

    def compression(self) -> list[Row]:
        rows = []
        for trigger, group in self.grouped(lambda each: each.boundary.trigger):
            lefts = [each.left for each in group if each.left is not None]
            if lefts:
                shares = average(lefts, 1), middle(lefts, 1), rounded(max(lefts), 1)
                rows.append((trigger or "unknown", len(lefts), *shares))
        return rows

    def compaction_cost(self) -> list[Row]:
        rows = []
        for model, group in self.grouped(lambda each: each.boundary.model):
            rewrites = [
                each.complete.cache_rewrite_tokens if each.complete else None for each in group
            ]
            receipts = [each.boundary.receipt for each in group]
            inputs = [each.summary_input_tokens if each else None for each in receipts]
            outputs = [each.summary_output_tokens if each else None for each in receipts]
            rows.append(
                (
                    model or "unknown",
                    len(group),
                    *(total(rewrites), known(rewrites)),
                    *(total(inputs), total(outputs), known(inputs)),
                    total(each.wait_ms for each in group),
                )
            )
        return rows

    def _placed(self) -> list[tuple[Record, int, int, int, int, int | None]]:
        """Return readings of compacted chains: epoch, last epoch, since, until, growth."""
        placed = []
        for records in self.chains.values():
            epochs: list[list[Record]] = [[]]
            for record in records:
                if isinstance(record.data, CompactBoundary):
                    epochs.append([])
                elif isinstance(record.data, ContextReading):
                    epochs[-1].append(record)
            last = max((at for at, epoch in enumerate(epochs) if epoch), default=0)
            for at, epoch in enumerate(epochs):
                for number, record in enumerate(epoch):
                    used = record.data.used_tokens  # type: ignore[union-attr]
                    step = used - epoch[number - 1].data.used_tokens if number else None  # type: ignore[union-attr]
                    placed.append((record, at, last, number + 1, len(epoch) - number, step))
        return placed

    def around_boundaries(self) -> list[Row]:
        outputs = self.outputs()
        sides: dict[int, list[Record]] = defaultdict(list)
        for record, epoch, last, since, until, _ in self._placed():
            if epoch < last and until <= 10:
                sides[-until].append(record)
            if epoch > 0 and since <= 10:
                sides[since].append(record)
        return [
            (
                place,
                len(group),
                average(each.data.used_tokens for each in group),  # type: ignore[union-attr]
                _cached(group),
                average(outputs[each.id] for each in group),
            )
            for place, group in sides.items()
        ]

    def before_and_after(self) -> list[Row]:
        outputs = self.outputs()
        places: dict[str, list[tuple[Record, int | None]]] = defaultdict(list)
        for record, epoch, last, since, until, step in self._placed():
            if last:
                after, before = epoch > 0 and since <= 10, epoch < last and until <= 10
                place = "ten after" if after else "ten before" if before else "elsewhere"
                places[place].append((record, step))
        return [
            (
                place,
                len(group),
                average(step for _, step in group if step is not None and step >= 0),
                average(outputs[each.id] for each, _ in group),
                known(outputs[each.id] for each, _ in group),
                _cached([each for each, _ in group]),
            )
            for place, group in places.items()
        ]

    def pressure_histogram(self) -> list[Row]:
        tens = [f"{each}-{each + 10}%" for each in range(10, 100, 10)]
        names, ends = ("< 10%", *tens, "100%+"), range(10, 101, 10)
        fullest = self._fullest().values()
        assumed = [most for most, source in fullest if source in {"default", "exceeded"}]
        others = [most for most, source in fullest if source not in {"default", "exceeded"}]
        all_ = in_bins((most for most, _ in fullest), names, ends)
        split = in_bins(others, names, ends), in_bins(assumed, names, ends)
        return [(name, all_[name], split[0][name], split[1][name]) for name in names]

    def pressure_by_day(self) -> list[Row]:
        days: dict[str, list[float]] = defaultdict(list)
        for record, data in self.readings:
            day = day_of(record)
            if day is not None and data.used_percent is not None:
                days[day].append(data.used_percent)
        return [(day, len(each), middle(each, 1), high(each, 0.9, 1)) for day, each in days.items()]

    def _by_model(self) -> dict[str, list[ContextReading]]:
        models: dict[str, list[ContextReading]] = defaultdict(list)
        for _, data in self.readings:
            models[data.model or "unknown"].append(data)
        return models

    def pressure(self) -> list[Row]:
        rows = []
        for model, readings in self._by_model().items():
            percents = [each.used_percent for each in readings if each.used_percent is not None]
            most = rounded(max(percents), 1) if percents else None
            at_80 = sum(each >= 80 for each in percents)
            figures = average(percents, 1), high(percents, 0.9, 1), most, at_80
            rows.append((model, len(readings), len(percents), *figures))
        return rows

    def growth(self) -> list[Row]:
        steps: dict[str, list[int]] = defaultdict(list)
        for records in self.chains.values():
            readings = [each.data for each in records if isinstance(each.data, ContextReading)]
            for one, other in pairwise(readings):
                if other.used_tokens >= one.used_tokens:
                    steps[other.model or "unknown"].append(other.used_tokens - one.used_tokens)
        return [
            (model, len(each), average(each), middle(each), max(each))
            for model, each in steps.items()
        ]

    def subagents(self) -> list[Row]:
        types: dict[str, list[ContextReading]] = defaultdict(list)
        for _, data in self.readings:
            if data.chain != "main":
                types[data.subagent_type or "unknown"].append(data)
        return [
            (
                name,
                len({(each.session_id, each.chain) for each in group}),
                len(group),
                max(each.used_tokens for each in group),
                average(each.used_tokens for each in group),
            )
            for name, group in types.items()
        ]

    def composition(self) -> list[Row]:
        latest = {
            each.data.session_id: each.data
            for each in self.own
            if isinstance(each.data, ContextLimits) and each.data.categories is not None
        }
        parts: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
        for session, data in latest.items():
            for part in data.categories or ():
                if part.kind != "free":
                    name = part.name or part.id or "unknown"
                    parts[name, part.kind or "unknown"].append((session, part.tokens or 0))
        whole = sum(tokens for group in parts.values() for _, tokens in group)
        rows = []
        for (name, kind), group in parts.items():
            sessions, tokens = len({each for each, _ in group}), sum(each for _, each in group)
            share = rounded(100 * tokens / whole, 1)
            rows.append((name, kind, sessions, rounded(tokens / sessions), share))
        return rows

    def base_share(self) -> list[Row]:
        models: dict[str, list[tuple[int, ContextReading]]] = defaultdict(list)
        for (_, chain), records in self.chains.items():
            readings = [each.data for each in records if isinstance(each.data, ContextReading)]
            if chain == "main" and readings and readings[0].messages_total <= 3:
                for each in readings:
                    models[each.model or "unknown"].append((readings[0].used_tokens, each))
        rows = []
        for model, group in models.items():
            used = sum(each.used_tokens for _, each in group)
            repeated = sum(min(base, each.used_tokens) for base, each in group)
            sessions = len({each.session_id for _, each in group})
            share = rounded(100 * repeated / used, 1) if used else None
            bases = average(base for base, _ in group)
            rows.append((model, sessions, len(group), bases, used, repeated, share))
        return rows

    def cache_misses(self) -> list[Row]:
        pauses: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for records in self.chains.values():
            readings = [each for each in records if isinstance(each.data, ContextReading)]
            for one, other in pairwise(readings):
                before, now = one.data, other.data
                if not isinstance(before, ContextReading) or not isinstance(now, ContextReading):
                    continue
                if now.messages <= before.messages or now.cache_read_tokens is None:
                    continue
                name = "unknown"
                if now.model and before.model and now.model != before.model:
                    name = "another model"
                elif one.time_ms is not None and other.time_ms is not None:
                    pause = other.time_ms - one.time_ms
                    is_short, is_long = pause < 5 * MINUTE_MS, pause >= 60 * MINUTE_MS
                    name = "< 5 min" if is_short else "> 1 h" if is_long else "5-60 min"
                held, read = before.used_tokens, now.cache_read_tokens
                pauses[name].append((now.used_tokens, max(held - read, 0), held))
        rows = []
        for name, group in pauses.items():
            used, missed, held = (sum(values) for values in zip(*group, strict=True))
            rows.append((name, len(group), used, missed, rounded(100 * missed / held, 1)))
        return rows

    def cache_share(self) -> list[Row]:
        days: dict[str, list[ContextReading]] = defaultdict(list)
        for record, data in self.readings:
            day = day_of(record)
            if day is not None and data.cache_read_tokens is not None:
                days[day].append(data)
        rows = []
        for day, group in days.items():
            used = sum(each.used_tokens for each in group)
            read = sum(each.cache_read_tokens or 0 for each in group)
            rows.append((day, len(group), used, read, rounded(100 * read / used, 1)))
        return rows

    def _attempts(self) -> list[tuple[str | None, str, int | None, str | None, Record]]:
        """Return attempts: outcome, session, duration, error, and the record that begins one."""
        ends: dict[str, Record] = {}
        attempts = []
        for record in self.all:
            if (
                isinstance(record.data, CompactBoundary | CompactionFailed)
                and record.data.attempt_id
            ):
                ends[record.data.attempt_id] = record
        for record in self.own:
            data = record.data
            if isinstance(data, CompactionStart):
                end = ends.get(record.id)
                outcome = error = duration = None
                if end is not None:
                    closed = end.data
                    duration = closed.duration_ms  # type: ignore[union-attr]
                    if isinstance(closed, CompactionFailed):
                        outcome, error = closed.outcome, closed.error
                    else:
                        outcome = "succeeded"
                attempts.append((outcome, data.session_id, duration, error, record))
            elif isinstance(data, CompactionFailed) and data.attempt_id is None:
                attempts.append(
                    (data.outcome, data.session_id, data.duration_ms, data.error, record)
                )
        return attempts

    def attempts_by_outcome(self) -> list[Row]:
        attempts = self._attempts()
        return [
            (
                outcome or "no end",
                len(group),
                rounded(100 * len(group) / len(attempts), 1),
                len({each[1] for each in group}),
                middle(each[2] for each in group),
            )
            for outcome, group in _groups(attempts, lambda each: each[0])
        ]

    def compaction_errors(self) -> list[Row]:
        failed = [each for each in self._attempts() if each[0] not in {None, "succeeded"}]
        return [
            (error or "unknown", outcome, len(group), len({each[1] for each in group}))
            for (error, outcome), group in _groups(failed, lambda each: (each[3], each[0]))
        ]

    def open_attempts(self) -> list[Row]:
        return [
            (
                each.data.session_id,
                each.data.chain,
                minute_of(each),
                each.data.used_tokens,  # type: ignore[union-attr]
                each.data.context_used_percent,  # type: ignore[union-attr]
            )
            for outcome, _, _, _, each in self._attempts()
            if outcome is None
        ]

    def warning_lead(self) -> list[Row]:
        names, leads = ("0", "1-2", "3-9", "10-29", "30+"), []
        unwarned = 0
        for records in self.chains.values():
            lead: int | None = None
            for record in records:
                data = record.data
                if isinstance(data, ContextWarning):
                    lead = 0 if lead is None else lead
                elif isinstance(data, ContextReading) and lead is not None:
                    lead += 1
                elif isinstance(data, CompactBoundary):
                    if data.trigger == "auto":
                        unwarned += lead is None
                        leads.append(lead)
                    lead = None
        counts = in_bins(leads, names, (1, 3, 10, 30))
        return [("no warning", unwarned), *((name, counts[name]) for name in names)]

    def thrashing(self) -> list[Row]:
        rows = []
        for (session, chain), records in self.chains.items():
            ends = [each for each in records if isinstance(each.data, CompactBoundary)]
            close = [
                (first, third)
                for first, third in zip(ends, ends[2:], strict=False)
                if first.time_ms is not None
                and third.time_ms is not None
                and third.time_ms - first.time_ms <= 10 * MINUTE_MS
            ]
            if close:
                begin = min((first for first, _ in close), key=lambda each: each.time_ms or 0)
                end = max((third for _, third in close), key=lambda each: each.time_ms or 0)
                rows.append((session, chain, len(close), minute_of(begin), minute_of(end)))
        return rows

    def unreachable_floors(self) -> list[Row]:
        rows = []
        for (session, chain), records in self.chains.items():
            own = [
                each
                for each in self.compactions
                if (each.boundary.session_id, each.boundary.chain) == (session, chain)
                and each.complete is not None
                and each.complete.tokens_after is not None
            ]
            reported = [
                each.data.auto_compact_threshold
                for each in records
                if isinstance(each.data, ContextLimits) and each.data.auto_compact_threshold
            ]
            sizes = [each.boundary.pre_tokens for each in own if each.boundary.trigger == "auto"]
            least = min((each for each in sizes if each is not None), default=None)
            threshold = reported[-1] if reported else least
            floors = [each.complete.tokens_after or 0 for each in own if each.complete]
            if own and threshold and min(floors) >= 0.75 * threshold:
                share = rounded(100 * min(floors) / threshold, 1)
                last = max(own, key=lambda each: each.record.sequence).boundary.model
                end = "yes" if min(floors) >= threshold else "no"
                rows.append((session, chain, last, len(own), min(floors), threshold, share, end))
        return rows

    def exhausted(self) -> list[Row]:
        return [
            (
                each.data.session_id,
                each.data.chain,
                minute_of(each),
                each.data.model,
                each.data.reason,
                each.data.tokens_over,
            )
            for each in self.own
            if isinstance(each.data, ContextExhausted)
        ]

    def wrong_windows(self) -> list[Row]:
        wrong = [
            data
            for _, data in self.readings
            if data.window_source in {"default", "exceeded", "unknown"}
        ]
        return [
            (
                *(model or "unknown", source, window),
                *(len(group), len({each.session_id for each in group})),
                max(each.used_tokens for each in group),
            )
            for (model, source, window), group in _groups(
                wrong, lambda each: (each.model, each.window_source, each.window)
            )
        ]


def _cached(records: Iterable[Record]) -> float | None:
    readings = [each.data for each in records if isinstance(each.data, ContextReading)]
    some = [each for each in readings if each.cache_read_tokens is not None]
    used = sum(each.used_tokens for each in some)
    return (
        rounded(100 * sum(each.cache_read_tokens or 0 for each in some) / used, 1) if used else None
    )


def _groups(values: Iterable[Any], key: Callable[[Any], Any]) -> list[tuple[Any, list[Any]]]:
    ordered = sorted(values, key=lambda each: repr(key(each)))
    return [(name, list(group)) for name, group in groupby(ordered, key=key)]
