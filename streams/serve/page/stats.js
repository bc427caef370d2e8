// Figures of many compactions: from the server's aggregates, and from the latest of each session.

import { DAY, duration, exact, TIME } from "./format.js";
import { silence, stateOf } from "./status.js";

const TRIGGERS = ["automatic", "idle", "manual", "unknown_trigger"];
const OUTCOMES = ["succeeded", "failed", "blocked", "unknown"];
const HOUR_MS = 3_600_000;

/**
 * Compactions of aggregates by outcome, and those that succeeded by trigger too:
 * {succeeded, failed, blocked, unknown, ended, automatic, idle, manual, unknown_trigger}.
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

/** Mean messages before a compaction, to one digit; null without compactions. */
export function messagesEach(aggregates) {
  const { succeeded } = countsOf(aggregates);
  return succeeded === 0 ? null : Math.round((10 * aggregates.messages) / succeeded) / 10;
}

const MONTH = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric" });

/** The midnight here at or before a time, `days` and `months` later. */
function midnight(timeMs, days = 0, months = 0) {
  const date = new Date(timeMs);
  date.setHours(0, 0, 0, 0);
  date.setMonth(date.getMonth() + months, date.getDate() + days);
  return date.getTime();
}

function monthOf(timeMs, months = 0) {
  const date = new Date(midnight(timeMs));
  return midnight(date.setDate(1), 0, months);
}

/**
 * What a column may stand for: its name, where that of a time begins, where the next one does, its
 * words, and the longest time that is divided into such columns.
 */
const UNITS = [
  { name: "hour", start: (ms) => Math.floor(ms / HOUR_MS) * HOUR_MS, next: (ms) => ms + HOUR_MS, words: hourWords, mostMs: 31 * 24 * HOUR_MS },
  { name: "day", start: (ms) => midnight(ms), next: (ms) => midnight(ms, 1), words: (ms) => DAY.format(ms), mostMs: 731 * 24 * HOUR_MS },
  { name: "month", start: (ms) => monthOf(ms), next: (ms) => monthOf(ms, 1), words: (ms) => MONTH.format(ms), mostMs: Infinity },
];

/**
 * Compactions over time: {unit, columns: [starts (s), automatic, manual, unknown_trigger]}, those
 * of idle sessions among the automatic ones. `hours` up to `untilMs`, null: all of them. What is
 * later comes from wrong clocks. No columns where there is no hour.
 */
export function overTime(byHour, untilMs, hours) {
  const times = Object.keys(byHour).map((hour) => [Date.parse(`${hour}:00:00Z`), hour])
    .filter(([time]) => time <= untilMs).sort(([one], [other]) => one - other); // NaN is no time
  if (times.length === 0) return { unit: UNITS[0], columns: [[], [], [], []] };
  const first = hours === null ? times[0][0] : UNITS[0].start(untilMs) - (hours - 1) * HOUR_MS;
  const unit = UNITS.find(({ mostMs }) => untilMs - first <= mostMs);
  const columns = [[], [], [], []];
  const places = new Map();
  for (let time = unit.start(first); time <= untilMs; time = unit.next(time)) {
    places.set(time, columns[0].length);
    columns[0].push(time / 1000);
    for (const column of columns.slice(1)) column.push(0);
  }
  for (const [time, hour] of times) {
    const place = places.get(unit.start(time));
    if (place === undefined) continue;
    const { automatic, idle, manual, unknown_trigger: unknownTrigger } = countsOf(byHour[hour]);
    [automatic + idle, manual, unknownTrigger].forEach((number, index) => { columns[index + 1][place] += number; });
  }
  return { unit, columns };
}

/** Above any size or duration of use: up to here, products below are exact. */
const LARGEST = 1e14;

/** Upper edges of the server's buckets: each value alone up to 49, then steps of 51/49. */
const EDGES = [0];
while (EDGES.at(-1) < LARGEST) EDGES.push(Math.max(EDGES.at(-1) + 1, Math.floor((EDGES.at(-1) * 51) / 49)));
const PLACES = new Map(EDGES.map((edge, index) => [edge, index]));

/** A distribution's buckets as bars: at most `most` neighbouring ones of equal width in edges, empty ones included. */
export function barsOf({ buckets }, most) {
  const counts = new Map(Object.entries(buckets).map(([edge, count]) => [PLACES.get(Number(edge)) ?? EDGES.length, count]));
  if (counts.size === 0) return [];
  const from = Math.min(...counts.keys());
  const to = Math.max(...counts.keys());
  const step = Math.ceil((to - from + 1) / most);
  const bars = [];
  for (let start = from; start <= to; start += step) {
    const end = Math.min(start + step - 1, to);
    let count = 0;
    for (let index = start; index <= end; index += 1) count += counts.get(index) ?? 0;
    bars.push({ above: start === 0 ? 0 : EDGES[start - 1], upTo: EDGES[end] ?? null, count });
  }
  return bars;
}

/** A figure as it is, in three figures: an edge must not be rounded into another one. */
function figure(value) {
  return String(Number(value.toPrecision(3)));
}

/** Tokens of an edge: 950, 1.25K, 167K, 3.15M. */
export function tokensEdge(size) {
  if (size < 1_000) return String(size);
  return size < 999_500 ? `${figure(size / 1_000)}K` : `${figure(size / 1_000_000)}M`;
}

/** The same of a time: 315 ms, 3.15 s, 31.5 s; as durations are elsewhere, but for a digit more below 10 s. */
export function durationEdge(ms) {
  return ms >= 1_000 && ms < 9_950 ? `${figure(ms / 1_000)} s` : duration(ms);
}

/** Where compactions are that a chart of some hours does not have: "" for nowhere. */
export function elsewhereWords(all, drawn, untimed) {
  if (drawn >= all) return "";
  const others = all - drawn - untimed;
  const parts = [`${exact(drawn)} of ${exact(all)} compactions are in this chart`];
  if (untimed > 0) parts.push(`${exact(untimed)} ${untimed === 1 ? "has" : "have"} no time`);
  if (others > 0) parts.push(`${exact(others)} ${others === 1 ? "was" : "were"} at other times`);
  return `${parts.join(" · ")}.`;
}

/** Known durations of either trigger from which on their averages are compared. */
const COMPARED_FROM = 3;

/** Manual and automatic compactions by mean duration, in words; "" where too few durations are known. */
export function fasterWords({ manual, automatic }) {
  if (Math.min(manual.duration_ms.count, automatic.duration_ms.count) < COMPARED_FROM) return "";
  const [one, other] = [manual.duration_ms.mean, automatic.duration_ms.mean];
  const figures = `${duration(one)} on average, automatic ones ${duration(other)}`;
  if (duration(one) === duration(other)) return `Manual and automatic compactions take the same time: ${duration(one)} on average.`;
  return `Manual compactions are ${one < other ? "faster" : "slower"}: ${figures}.`;
}

/** A percentile in words, such as "p50", with ~ where it is not exact; `write` writes a value. */
export function percentileWords(distribution, name, write) {
  const isExact = distribution.exact.includes(Number(name.slice(1)));
  return `${isExact || distribution[name] === null ? "" : "~"}${write(distribution[name])}`;
}

/** Of how many durations an average is: "of 3 known"; "" for none. */
export function knownWords({ count: known }) {
  return known ? `of ${exact(known)} known` : "";
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
function hourWords(startMs) {
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
