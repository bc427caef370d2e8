// What a view means now. Views know no clock: whether a figure is old is for a reader's to say.

export const AMBER_PERCENT = 80;
/** Red without a known threshold: so full that a compaction or the end is near. */
const RED_PERCENT = 95;
/** Red with a known threshold: less than a fortieth of the window is left before it. */
const RED_SHARE = 40;
/** The seed of this display: a triangle below 30 % remaining, amber at 20 % and less. */
export const TRIANGLE_REMAINING = 30;
export const AMBER_REMAINING = 20;

/** A session that was silent so long may be over: its figure is that of then. */
export const STALE_MS = 30 * 60_000;
/** A compaction without a sign of life for so long has stalled: runtimes send one every 30 s. */
export const STALLED_MS = 2 * 60_000;
/** So many compactions of one session in so short a time: each gained next to nothing. */
export const THRASH_COUNT = 3;
export const THRASH_MS = 10 * 60_000;
/** A session that did so is said to thrash for so long after; what it did stays told elsewhere. */
export const THRASHES_MS = 60 * 60_000;

export const MAIN = "main";

const NOTHING = Object.freeze({
  chain: MAIN, model: null, state: "unknown", used_tokens: null, used_percent: null, window: null,
  window_source: null, breakdown: null, as_of_ms: null, auto_compact_enabled: null,
  auto_compact_threshold: null, until_compaction_tokens: null, peak_tokens: null,
  peak_percent: null, messages: 0, messages_total: 0, differences: [], growth_tokens: null,
  responses_left: null, pending: null,
});

/** The chain that stands for a session: the main one, else the latest; else one that knows nothing. */
export function mainChain(view) {
  const main = view.chains[MAIN];
  if (main !== undefined) return main;
  return Object.values(view.chains).reduce(
    (best, chain) => (chain.last_sequence > (best.last_sequence ?? -1) ? chain : best),
    NOTHING,
  );
}

/** "calm", "amber" from 80 % used, "red" near compaction, "unknown". */
export function pressure(chain) {
  const used = chain.used_percent;
  if (used === null || used === undefined) return "unknown";
  const until = chain.until_compaction_tokens;
  if (until !== null && until !== undefined && chain.window) {
    if (until * RED_SHARE <= chain.window) return "red";
  } else if (used >= RED_PERCENT) {
    return "red";
  }
  return used >= AMBER_PERCENT ? "amber" : "calm";
}

/** Whether the warning triangle stands: less than 30 % of the window remain. */
export function hasTriangle(usedPercent) {
  return usedPercent !== null && usedPercent !== undefined && 100 - usedPercent < TRIANGLE_REMAINING;
}

/** Milliseconds since the open attempt gave a sign of life; null where no time is told. */
export function silence(attempt, nowMs) {
  const last = attempt.last_heartbeat_ms ?? attempt.started_ms;
  return last === null || last === undefined ? null : nowMs - last;
}

/** Milliseconds that the open attempt has taken by now; null where no start is told. */
export function running(attempt, nowMs) {
  if (attempt.started_ms !== null && attempt.started_ms !== undefined) {
    return nowMs - attempt.started_ms;
  }
  return attempt.elapsed_ms;
}

/**
 * A session's state: "compacting", "stalled", "stale", "unknown", "estimated" or "measured".
 * A stale size is still that which was last measured; an unknown one stays unknown.
 */
export function stateOf(view, nowMs) {
  const chain = mainChain(view);
  if (view.attempt !== null) {
    const quiet = silence(view.attempt, nowMs);
    return quiet !== null && quiet >= STALLED_MS ? "stalled" : "compacting";
  }
  if (chain.state === "unknown" || chain.used_tokens === null) return "unknown";
  if (view.last_ms !== null && nowMs - view.last_ms >= STALE_MS) return "stale";
  return chain.state;
}

/**
 * Why no size is known: "compacted" or "cleared", which the next response ends; "never": none
 * was told yet. An epoch's `as_of_ms` is the time of what began it.
 */
export function whyUnknown(view) {
  const chain = mainChain(view);
  if (chain.pending) return "compacted";
  const last = view.compactions.last.findLast((each) => each.chain === chain.chain && each.outcome === "succeeded");
  if (last !== undefined && last.time_ms !== null && last.time_ms === chain.as_of_ms) return "compacted";
  return chain.peak_tokens === null ? "never" : "cleared";
}

/** All compactions that succeeded. */
export function compactionCount(view) {
  const { manual, automatic, unknown_trigger } = view.compactions;
  return manual + automatic + unknown_trigger;
}

/**
 * How the attempts without success are called: "failed" where that was told of each, else "not
 * done": some were blocked, or nobody told how they ended.
 */
export function failureName(view) {
  const { failed, last } = view.compactions;
  return last.filter((each) => each.outcome === "failed").length === failed ? "failed" : "not done";
}

/** Whether a session thrashes now: the last of so many compactions is not long ago. */
export function isThrashing(view, nowMs) {
  return thrashing(view, nowMs - THRASHES_MS) !== null;
}

/** The shortest stretch that held so many compactions and ended since then; null for none. */
export function thrashing(view, sinceMs = -Infinity) {
  const times = view.compactions.last
    .filter((each) => each.outcome === "succeeded" && each.time_ms !== null)
    .map((each) => each.time_ms)
    .sort((a, b) => a - b);
  let shortest = null;
  for (let first = 0; first + THRASH_COUNT <= times.length; first += 1) {
    const span = times[first + THRASH_COUNT - 1] - times[first];
    if (times[first + THRASH_COUNT - 1] < sinceMs) continue;
    if (span <= THRASH_MS && (shortest === null || span < shortest.span)) {
      shortest = { span, count: THRASH_COUNT, until: times[first + THRASH_COUNT - 1] };
    }
  }
  return shortest;
}
