"""The report's answers about the sizes of contexts, what they consist of, and their cost."""

from collections import defaultdict
from itertools import pairwise

from contextgauge.records import (
    ContextLimits,
    ContextReading,
)
from streams.cli.pages.values import day
from tests.cli.report_costs import by_day, by_model, calls_of, in_all, profits
from tests.cli.report_facts import (
    MINUTE_MS,
    RecordFacts,
    Row,
    average,
    day_of,
    high,
    in_bins,
    middle,
    rounded,
)


class ContextAnswers(RecordFacts):
    """Answers about contexts and money."""

    def total_cost(self) -> list[Row]:
        return [in_all(calls_of(self.own, self.outputs()))]

    def cost_by_day(self) -> list[Row]:
        return by_day(calls_of(self.own, self.outputs()), day_of)

    def cost_by_model(self) -> list[Row]:
        return by_model(calls_of(self.own, self.outputs()), day)

    def profit_by_model(self) -> list[Row]:
        return profits(self.own)

    def pressure_histogram(self) -> list[Row]:
        tens = [f"{each}-{each + 10}%" for each in range(10, 100, 10)]
        names, ends = ("< 10%", *tens, "100%+"), range(10, 101, 10)
        fullest = self.fullest().values()
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
        of_chains: dict[tuple[str, str], list[ContextReading]] = defaultdict(list)
        for _, data in self.readings:
            if data.chain != "main":
                of_chains[data.session_id, data.chain].append(data)
        types: dict[str, list[ContextReading]] = defaultdict(list)
        for readings in of_chains.values():
            known = [each.subagent_type for each in readings if each.subagent_type]
            types[max(known, default="unknown")].extend(readings)
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
        for name, group in days.items():
            used = sum(each.used_tokens for each in group)
            read = sum(each.cache_read_tokens or 0 for each in group)
            rows.append((name, len(group), used, read, rounded(100 * read / used, 1)))
        return rows
