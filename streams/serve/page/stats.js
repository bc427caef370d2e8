// Figures of many compactions: from the server's aggregates, and from the latest of each session.

import { DAY, duration, TIME, UNKNOWN } from "./format.js";
import { silence, stateOf } from "./status.js";

const TRIGGERS = ["automatic", "manual", "unknown_trigger"];
const OUTCOMES = ["succeeded", "failed", "blocked", "unknown"];
const HOUR_MS = 3_600_000;

/**
 * Compactions of aggregates by outcome, and those that succeeded by trigger too:
 * {succeeded, failed, blocked, unknown, ended, automatic, manual, unknown_trigger}.
 */
export function countsOf(aggregates) {
  const succeeded = Object.fromEntries(TRIGGERS.map((name) => [name, aggregates[name].succeeded]));
  const counts = { ...succeeded, ended: 0 };
  for (const outcome of OUTCOMES) {
    counts[outcome] = TRIGGERS.reduce((sum, name) => sum + aggregates[name][outcome], 0);
    counts.ended += counts[outcome];
  }
  return counts;
}

/** What remains of a context after compaction, percent; null where nothing was measured. */
export function remainingShare(aggregates) {
  const before = aggregates.measured_before_tokens;
  if (!aggregates.measured || !before) return null;
  return ((before - aggregates.saved_tokens) / before) * 100;
}

/** Mean messages before a compaction, floored; null without compactions. */
export function messagesEach(aggregates) {
  const { succeeded } = countsOf(aggregates);
  return succeeded === 0 ? null : Math.floor(aggregates.messages / succeeded);
}

/**
 * Compactions by hour as columns [hours (s), automatic, manual, unknown_trigger], every one of the
 * `most` hours to `untilMs`: later ones come from wrong clocks. Empty where there is no hour.
 */
export function hourly(byHour, untilMs, most) {
  const hours = Object.entries(byHour)
    .map(([hour, aggregates]) => [Date.parse(`${hour}:00:00Z`), countsOf(aggregates)])
    .filter(([time]) => !Number.isNaN(time));
  if (hours.length === 0) return [[], [], [], []];
  const counts = new Map(hours);
  const last = Math.floor(untilMs / HOUR_MS) * HOUR_MS;
  const first = last - (most - 1) * HOUR_MS;
  const columns = [[], [], [], []];
  for (let time = first; time <= last; time += HOUR_MS) {
    columns[0].push(time / 1000);
    TRIGGERS.forEach((name, index) => columns[index + 1].push(counts.get(time)?.[name] ?? 0));
  }
  return columns;
}

/** A distribution's buckets as bars: at most `most` neighbouring ones of equal width in edges, empty ones included. */
export function barsOf({ buckets }, edges, most) {
  const counts = new Map(Object.entries(buckets).map(([edge, count]) => [edge === "over" ? edges.length : edges.indexOf(Number(edge)), count]));
  if (counts.size === 0) return [];
  const from = Math.min(...counts.keys());
  const to = Math.max(...counts.keys());
  const step = Math.ceil((to - from + 1) / most);
  const bars = [];
  for (let start = from; start <= to; start += step) {
    const end = Math.min(start + step - 1, to);
    let count = 0;
    for (let index = start; index <= end; index += 1) count += counts.get(index) ?? 0;
    bars.push({ above: start === 0 ? 0 : edges[start - 1], upTo: edges[end] ?? null, count });
  }
  return bars;
}

const STEPS = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];
const series = (powers, last) => [
  ...Array.from({ length: powers }, (_, power) => STEPS.map((step) => step * 10 ** power)).flat(), last,
];

/** Edges of the server's buckets: 0.1 s to 2.8 h, and 1 000 to 10 million tokens. */
export const DURATION_EDGES = series(5, 10_000_000);
export const TOKEN_EDGES = series(5, 10_000_000).filter((edge) => edge >= 1_000);

/** A figure as it is, in three figures: an edge of a range must not be rounded into another one. */
function figure(value) {
  return String(Number(value.toPrecision(3)));
}

/** Tokens of an edge or a smallest or largest value: 950, 1.25K, 167K, 3.15M. */
export function tokensEdge(size) {
  if (size < 1_000) return String(size);
  return size < 999_500 ? `${figure(size / 1_000)}K` : `${figure(size / 1_000_000)}M`;
}

/** The same of a time: 0.315 s, 31.5 s, 160 s; from ten minutes on as times are elsewhere. */
export function durationEdge(ms) {
  return ms < 599_500 ? `${figure(ms / 1_000)} s` : duration(ms);
}

/** A percentile as it is known: the range that it lies in, or the figure where it is exact. */
export function rangeWords(range, format) {
  if (range === null) return UNKNOWN;
  const [low, high] = [format(range.at_least), format(range.at_most)];
  return low === high ? low : `${low} – ${high}`;
}

/** A bar's range: `above` an edge, up to the next one. */
export function bandWords({ above, upTo }, format) {
  return upTo === null ? `over ${format(above)}` : `${format(above)} – ${format(upTo)}`;
}

/** Where bars meet, as ticks: half a step before each bar and one behind the last. */
export function edgeTicks(bars) {
  return Array.from({ length: bars.length + 1 }, (_, index) => index - 0.5);
}

/** The words of such ticks, every `step`th: the edge between two bars; none behind an open one. */
export function edgeWords(bars, ticks, step, format) {
  return ticks.map((tick) => {
    const index = tick + 0.5;
    if (index % step) return null;
    const edge = index < bars.length ? bars[index].above : bars.at(-1)?.upTo;
    return edge === null || edge === undefined ? null : format(edge);
  });
}

/** An hour with its day: a table of hours goes over midnight. */
export function hourWords(startMs) {
  return `${DAY.format(startMs)}, ${TIME.format(startMs)} – ${TIME.format(startMs + HOUR_MS)}`;
}

/** Shares of the context that remained after sessions' latest compactions, counted by tenths. */
export function remainingTenths(views) {
  const tenths = Array.from({ length: 10 }, (_, tenth) => ({ above: tenth * 10, upTo: tenth * 10 + 10, count: 0 }));
  let larger = 0;
  let measured = 0;
  for (const view of views) {
    for (const { tokens_before: before, tokens_after: after } of view.compactions.last) {
      if (!before || after === null) continue;
      measured += 1;
      const share = (after / before) * 100;
      if (share >= 100) larger += 1;
      else tenths[Math.floor(share / 10)].count += 1;
    }
  }
  if (larger) tenths.push({ above: 100, upTo: null, count: larger });
  return { tenths, measured };
}

/** Sessions that thrashed, the latest first. */
export function thrashed(views) {
  return views.filter((view) => view.status.thrash !== null)
    .sort((a, b) => b.status.thrash.last_ms - a.status.thrash.last_ms);
}

/** Sessions whose open compaction has stalled, the longest first. */
export function stalled(views, nowMs) {
  return views.filter((view) => stateOf(view, nowMs) === "stalled")
    .sort((a, b) => silence(b, nowMs) - silence(a, nowMs));
}
