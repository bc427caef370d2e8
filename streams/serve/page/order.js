// The order of the overview: live sessions first, then by a column; as the server ranks them.

import { folderOf } from "./format.js";
import { currentThresholds, compactionCount, leadingChain, untilOf } from "./status.js";

const MINUTE_MS = 60_000;

/** By the API's name: words, the direction, and the key, ascending; null comes last. */
const SORTS = {
  pressure: ["By pressure", "descending", (view) => negative(leadingChain(view).used_percent)],
  recent: ["By last activity", "descending", () => 0],
  until: ["By tokens until compaction", "ascending", (view) => untilOf(view, leadingChain(view))?.tokens ?? null],
  growth: ["By growth", "descending", (view) => negative(leadingChain(view).growth_tokens)],
  compactions: ["By compactions", "descending", (view) => -compactionCount(view)],
  folder: ["By folder", "ascending", (view) => (folderOf(view) || view.session_id).toLowerCase()],
};

export const DEFAULT_SORT = "pressure";

/** The names of the sorts with their words. */
export const SORT_WORDS = Object.entries(SORTS).map(([name, [words]]) => [name, words]);

export function isSort(name) {
  return name in SORTS;
}

/** What a sorted column says of itself: `aria-sort`. */
export function directionOf(sort) {
  return SORTS[sort][1];
}

function negative(value) {
  return value === null ? null : -value;
}

/** Whether a session was active lately. In whole minutes, as at the server. */
export function isLive(view, nowMs) {
  const sinceMs = Math.floor((nowMs - currentThresholds().stale_after_ms) / MINUTE_MS) * MINUTE_MS;
  return (view.status.last_active_ms ?? 0) >= sinceMs;
}

/** Sort items, each with a `view` and an `id`. Ties: by last activity, then by id. */
export function sorted(items, sort, nowMs) {
  const key = SORTS[sort][2];
  const ranked = items.map((item) => ({ item, past: !isLive(item.view, nowMs), key: key(item.view), last: item.view.status.last_active_ms ?? 0 }));
  ranked.sort((a, b) => a.past - b.past || compared(a.key, b.key) || b.last - a.last || compared(a.item.id, b.item.id));
  return ranked.map(({ item }) => item);
}

function compared(one, other) {
  if (one === other) return 0;
  if (one === null || other === null) return one === null ? 1 : -1;
  return one < other ? -1 : 1;
}
