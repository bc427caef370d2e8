// A live entry applied to a session's view: readings at once, by the rules of the projection;
// what an entry in short cannot tell is asked of the server.

import { MAIN } from "./judge.js";

const KEPT_DIFFERENCES = 10;

/**
 * Apply one live entry in place. Returns "old" (the view has it already), "done" (the view is
 * whole) or "ask" (the server must be asked for the rest).
 */
export function patch(view, entry) {
  if (entry.sequence <= view.sequence) return "old";
  const isNext = entry.sequence === view.sequence + 1;
  view.sequence = entry.sequence;
  if (entry.time_ms !== null) view.last_ms = Math.max(view.last_ms ?? 0, entry.time_ms);
  const chain = view.chains[entry.chain];
  if (entry.kind === "context_reading" && chain !== undefined) {
    applyReading(chain, entry);
    return isNext ? "done" : "ask";
  }
  if (entry.kind === "compaction_progress" && view.attempt !== null) {
    view.attempt.last_heartbeat_ms = entry.time_ms ?? view.attempt.last_heartbeat_ms;
    return isNext ? "done" : "ask";
  }
  if (chain !== undefined && entry.chain === MAIN) {
    if (entry.kind === "compact_boundary") Object.assign(chain, { pending: {}, as_of_ms: entry.time_ms }); // the rest is asked for
    if (entry.kind === "context_reset") Object.assign(chain, { pending: null, as_of_ms: entry.time_ms });
    chain.state = entry.state;
    chain.used_tokens = entry.used_tokens;
    chain.used_percent = entry.used_percent;
  }
  return entry.kind === "context_warning" && isNext ? "done" : "ask";
}

function applyReading(chain, entry) {
  const before = chain.state === "estimated" ? null : chain.used_tokens;
  const used = entry.used_tokens;
  if (before !== null && used !== null && used > before) {
    chain.differences = [...chain.differences, used - before].slice(-KEPT_DIFFERENCES);
    chain.growth_tokens = median(chain.differences);
  }
  chain.state = entry.state;
  chain.used_tokens = used;
  chain.used_percent = entry.used_percent;
  chain.as_of_ms = entry.time_ms;
  chain.breakdown = undefined; // not told by the feed: asked for when somebody looks at it
  if (used !== null && used > (chain.peak_tokens ?? -1)) {
    chain.peak_tokens = used;
    chain.peak_percent = entry.used_percent;
  }
  const threshold = chain.auto_compact_enabled === false ? null : chain.auto_compact_threshold;
  chain.until_compaction_tokens = threshold === null || used === null ? null : threshold - used;
  const limit = threshold ?? chain.window;
  chain.responses_left =
    limit === null || used === null || chain.growth_tokens === null
      ? null
      : Math.floor((limit - used) / chain.growth_tokens);
}

function median(differences) {
  const ordered = [...differences].sort((a, b) => a - b);
  const middle = ordered.length >> 1;
  return ordered.length % 2
    ? ordered[middle]
    : Math.floor((ordered[middle - 1] + ordered[middle]) / 2);
}
