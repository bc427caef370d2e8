// Figures as people read them. What is not known is "unknown", and never 0.

export const UNKNOWN = "unknown";

const EXACT = new Intl.NumberFormat("en-US");

/** 1234567 → "1,234,567". */
export function exact(count) {
  return count === null || count === undefined ? UNKNOWN : EXACT.format(count);
}

/** Short counts: below the first number, rounded to the second and shown in units of the third. */
const SHORT = [
  [1000, 1, 1, ""], [9950, 100, 1000, "K"], [999_500, 1000, 1000, "K"],
  [9_995_000, 10_000, 1_000_000, "M"], [99_950_000, 100_000, 1_000_000, "M"], [Infinity, 1_000_000, 1_000_000, "M"],
];

/** A short token count, as in the terminal: 950, 5.6K, 58K, 1.05M, 12.3M. */
export function tokens(count) {
  if (count === null || count === undefined) return UNKNOWN;
  const size = Math.abs(count);
  const [, step, unit, name] = SHORT.find(([limit]) => size < limit);
  return `${count < 0 ? "−" : ""}${(Math.round(size / step) * step) / unit}${name}`;
}

/** An estimated count with the two digits that are worth reading, as in the terminal: 47, 150, 1,300. */
export function roughly(count) {
  const step = 10 ** Math.max(String(count).length - 2, 0);
  return Math.round(count / step) * step;
}

/** A percentage, floored: 99.99 is not yet 100%. */
export function percent(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (value > 0 && value < 1) return "<1%";
  return `${Math.floor(value)}%`;
}

/** What remains where so much is used, percent: 100 less what is shown as used, so that the two add up. */
export function remaining(used) {
  if (used === null || used === undefined) return UNKNOWN;
  if (used > 0 && used < 1) return ">99%";
  return `${Math.max(0, 100 - Math.floor(used))}%`;
}

/** How full a context is, in the words of every screen: "62% used · 38% context remaining". */
export function usage(used, doubt = null) {
  return used === null || used === undefined ? UNKNOWN : `${guess(percent(used), doubt)} used · ${guess(remaining(used), doubt)} context remaining`;
}

/** A length of time, as in the terminal: "900 ms", "42.0 s", "3 min 5 s", "2 h 10 min", "4 d 3 h". */
export function duration(ms) {
  if (ms === null || ms === undefined) return UNKNOWN;
  const whole = Math.max(Math.round(ms), 0);
  if (whole < 1_000) return `${whole} ms`;
  if (whole < 59_950) return `${(Math.round(whole / 100) / 10).toFixed(1)} s`;
  const seconds = Math.round(whole / 1_000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return pair(minutes, "min", seconds % 60, "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return pair(hours, "h", minutes % 60, "min");
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

function pair(high, highUnit, low, lowUnit) {
  return low === 0 ? `${high} ${highUnit}` : `${high} ${highUnit} ${low} ${lowUnit}`;
}

/** How long ago, in one unit, so that it changes seldom: "now", "12 s ago", "3 h ago". */
export function ago(timeMs, nowMs) {
  if (timeMs === null || timeMs === undefined) return UNKNOWN;
  return nowMs - timeMs < 2_000 ? "now" : `${span(nowMs - timeMs)} ago`;
}

/** A length of time in one unit: "12 s", "31 min", "3 h", "4 d". */
export function span(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** A clock's count: "0:07", "12:03", "1:02:03". */
export function elapsed(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

export const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
export const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

/** The zone of all times on the page: the browser's, such as "Europe/Berlin". */
export const ZONE = TIME.resolvedOptions().timeZone;

/** The time of day here; with the day where that is not today's. */
export function moment(timeMs, nowMs) {
  if (timeMs === null || timeMs === undefined) return "time unknown";
  const day = DAY.format(timeMs);
  return day === DAY.format(nowMs) ? CLOCK.format(timeMs) : `${day}, ${CLOCK.format(timeMs)}`;
}

const SHORT_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** When something began, as short as it can be told apart: "14:02", "12 Sep, 14:02", "12 Sep 2025". */
export function beginning(timeMs, nowMs) {
  const [time, today] = [new Date(timeMs), new Date(nowMs)];
  if (time.getFullYear() !== today.getFullYear()) return DAY.format(time);
  const clock = TIME.format(time);
  return SHORT_DAY.format(time) === SHORT_DAY.format(today) ? clock : `${SHORT_DAY.format(time)}, ${clock}`;
}

/** "1 subagent", "3 subagents". */
export function count(number, one, many = `${one}s`) {
  return `${exact(number)} ${number === 1 ? one : many}`;
}

const ERRORS = {
  too_few_groups: "too few messages to compact",
  prompt_too_long: "the prompt is too long",
};
const CODE = /^[a-z0-9]+(?:_[a-z0-9]+)+$/;

/** A runtime's error or reason for people: a code in words, other text as it is. */
export function errorWords(error) {
  return ERRORS[error] ?? (CODE.test(error) ? error.replaceAll("_", " ") : error);
}

/** A thrash: "3 compactions within 12 min, until 14:02:11". */
export function thrashWords({ compactions, first_ms: firstMs, last_ms: lastMs }, nowMs) {
  return `${count(compactions, "compaction")} within ${duration(lastMs - firstMs)}, until ${moment(lastMs, nowMs)}`;
}

/** The sources of a window, by their names in records: in short, and as a sentence. */
const SOURCES = {
  configured: ["configured", "The window is set in the configuration of contextgauge"],
  runtime: ["reported", "The window is reported by the runtime"],
  catalog: ["by model name", "The window is from the model's name, by the table that comes with contextgauge"],
  default: ["assumed", "The window is assumed, as it is unknown"],
  unknown: ["unknown", "No window is known, and none is assumed for this runtime"],
  exceeded: ["", "The window is unknown: the size passed the one assumed by name or default"],
};
const NO_SOURCE = ["source unknown", "It is unknown where the window is from"];

/** Where a window is known from, in short; `passed` is the assumed one that the size passed. */
export function windowSource(source, passed = null) {
  if (source === "exceeded") return `the size passed the assumed ${passed === null ? "one" : tokens(passed)}`;
  return (SOURCES[source] ?? NO_SOURCE)[0];
}

const DOUBTS = { assumed: "", contradicted: ", and doubtful: automatic compactions come far below it" };

/** The same as a sentence, with why the window is doubtful. */
export function sourceMeaning(source, doubt = null) {
  return `${(SOURCES[source] ?? NO_SOURCE)[1]}${DOUBTS[doubt] ?? ""}.`;
}

/** A figure, marked `~` where it rests on a doubtful window. */
export function guess(figure, doubt) {
  return doubt === null || figure === UNKNOWN ? figure : `~${figure}`;
}

/** The name of a session's folder; "" where none is known. */
export function folderOf(view) {
  return (view.identity.cwd ?? "").replace(/[/\\]+$/, "").split(/[/\\]/).pop();
}

/** The names of sessions' folders, by path: those of one name are told apart by the folders that they are in. */
export function folderNames(paths) {
  const parts = new Map([...new Set(paths)].map((path) => [path, path.split(/[/\\]/).filter(Boolean)]));
  const names = new Map([...parts].map(([path, all]) => [path, all.slice(-1)]));
  for (let isSame = true; isSame;) {
    const byName = Map.groupBy(names, ([, name]) => name.join("/"));
    const longer = [...byName.values()].filter((each) => each.length > 1).flat().filter(([path, name]) => name.length < parts.get(path).length);
    for (const [path, name] of longer) names.set(path, parts.get(path).slice(-name.length - 1));
    isSame = longer.length > 0;
  }
  return new Map([...names].map(([path, name]) => [path, name.join("/")]));
}

const SHORT_ID = 8;

export function shortId(id) {
  return id.length > 13 ? id.slice(0, SHORT_ID) : id;
}

/** The shortest unique beginning of each of these ids, by id. */
export function shortIds(ids) {
  const ordered = [...new Set(ids)].sort();
  const needed = ordered.map((id) => shortId(id).length);
  for (let index = 1; index < ordered.length; index += 1) {
    const [before, after] = [ordered[index - 1], ordered[index]];
    let same = 0;
    while (same < before.length && before[same] === after[same]) same += 1;
    needed[index - 1] = Math.max(needed[index - 1], same + 1);
    needed[index] = Math.max(needed[index], same + 1);
  }
  return new Map(ordered.map((id, index) => [id, id.slice(0, needed[index])]));
}
