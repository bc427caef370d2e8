"""The report's answers about compactions, each as rows in the order of the question's columns."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from contextgauge.records import (
    CompactBoundary,
    ContextReading,
    ContextReset,
    Record,
    SessionInfo,
)
from tests.cli.report_facts import (
    RecordFacts,
    Row,
    WholeCompaction,
    average,
    cached,
    day_of,
    high,
    in_bins,
    known,
    middle,
    rounded,
    total,
    used_of,
)


class CompactionAnswers(RecordFacts):
    """Answers about compactions."""

    def grouped(
        self, key: Callable[[WholeCompaction], Any]
    ) -> list[tuple[Any, list[WholeCompaction]]]:
        groups: dict[Any, list[WholeCompaction]] = defaultdict(list)
        for each in self.compactions:
            groups[key(each)].append(each)
        return list(groups.items())

    def by_trigger(
        self,
        values: Callable[[WholeCompaction], float | None],
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
                sum(outcome in {"failed", "blocked"} for outcome, *_ in self.attempts()),
                len({each.boundary.session_id for each in self.compactions}),
                sum((most or 0) >= 80 for most, _ in self.fullest().values()),
                *bounds,
            )
        ]

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

    def saved_by_day(self) -> list[Row]:
        days: dict[str, list[int]] = defaultdict(list)
        for each in self.compactions:
            day = day_of(each.record)
            if day is not None and each.complete and each.complete.tokens_saved is not None:
                days[day].append(each.complete.tokens_saved)
        return [(day, len(all_), sum(all_), average(all_)) for day, all_ in days.items()]

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
                known(each.boundary.pre_tokens for each in group),
                average(each.boundary.pre_tokens for each in group),
                known(each.wait_ms for each in group),
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
                    *(total(each.wait_ms for each in group), known(each.wait_ms for each in group)),
                )
            )
        return rows

    def placed(self) -> list[tuple[Record, int | None, int | None, int | None]]:
        """Return readings of compacted chains: since and until a compaction, growth.

        Compactions are those with readings in the epochs before and after them.
        """
        placed = []
        for records in self.chains.values():
            epochs: list[list[Record]] = [[]]
            begins: list[Record | None] = [None]
            for record in records:
                if isinstance(record.data, CompactBoundary | ContextReset):
                    epochs.append([])
                    begins.append(record)
                elif isinstance(record.data, ContextReading):
                    epochs[-1].append(record)
            counted = {
                index
                for index, begin in enumerate(begins)
                if begin and isinstance(begin.data, CompactBoundary)
                if epochs[index - 1] and epochs[index]
            }
            for index, epoch in enumerate(epochs if counted else ()):
                for number, record in enumerate(epoch):
                    step = used_of(record) - used_of(epoch[number - 1]) if number else None
                    since = number + 1 if index in counted else None
                    until = len(epoch) - number if index + 1 in counted else None
                    placed.append((record, since, until, step))
        return placed

    def around_boundaries(self) -> list[Row]:
        outputs = self.outputs()
        sides: dict[int, list[Record]] = defaultdict(list)
        for record, since, until, _ in self.placed():
            if until is not None and until <= 10:
                sides[-until].append(record)
            if since is not None and since <= 10:
                sides[since].append(record)
        return [
            (
                place,
                len(group),
                average(map(used_of, group)),
                cached(group),
                average(outputs[each.id] for each in group),
            )
            for place, group in sides.items()
        ]

    def before_and_after(self) -> list[Row]:
        outputs = self.outputs()
        places: dict[str, list[tuple[Record, int | None]]] = defaultdict(list)
        for record, since, until, step in self.placed():
            after, before = (each is not None and each <= 10 for each in (since, until))
            place = "ten after" if after else "ten before" if before else "elsewhere"
            places[place].append((record, step))
        return [
            (
                place,
                len(group),
                average(step for _, step in group if step is not None and step >= 0),
                average(outputs[each.id] for each, _ in group),
                known(outputs[each.id] for each, _ in group),
                cached([each for each, _ in group]),
            )
            for place, group in places.items()
        ]
