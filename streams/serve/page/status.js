// What a session looks like now. The server decides (`status` of each session): here its verdicts
// are drawn, and flip at the instants that it names. There are no rules in this page.

import { shortIds } from "./format.js";

export const MAIN = "main";

const NOTHING = Object.freeze({
  chain: MAIN, model: null, state: "unknown", used_tokens: null, used_percent: null, window: null,
  window_source: null, breakdown: null, as_of_ms: null, auto_compact_enabled: null,
  auto_compact_threshold: null, until_compaction_tokens: null, peak_tokens: null,
  peak_percent: null, messages: null, messages_total: null, differences: [], growth_tokens: null,
  responses_left: null, pending: null, passed_window: null,
});

/** Where verdicts change, as the server says with its answers. */
let thresholds = {};

/** Take over the thresholds of an answer, and return it. */
export function withThresholds(answer) {
  ({ thresholds } = answer);
  return answer;
}

export function currentThresholds() {
  return thresholds;
}

/** The chain that stands for a session; one of which nothing is known where there is none. */
export function leadingChain(view) {
  return view.chains[view.status.leading_chain] ?? NOTHING;
}

/** The name of a subagent's chain, the same everywhere: what it is, and the unique beginning of its id. */
export function chainName(view, chain) {
  const short = shortIds([...Object.keys(view.chains), chain]).get(chain);
  return [view.chains[chain]?.subagent_type, short].filter(Boolean).join(" ");
}

/** A chain within a sentence. */
export function chainWords(view, chain) {
  return chain === MAIN ? "the main conversation" : `subagent ${chainName(view, chain)}`;
}

/** How full a chain is: "unknown", "normal", "elevated", "high" or "critical". */
export function severityOf(view, chain) {
  return view.status.severities[chain.chain] ?? "unknown";
}

/** How far a chain is from automatic compaction, as the server judges it; null where nothing is known. */
export function untilOf(view, chain) {
  return view.status.until_compaction[chain.chain] ?? null;
}

/** Why a chain's window may be wrong: "assumed", "contradicted" or null. */
export function doubtOf(view, chain) {
  return view.status.window_doubts[chain.chain] ?? null;
}

/** Whether nothing is left until compaction: "due", or "expected" of a point that is estimated; else null. */
export function dueWord(until) {
  if (until === null || until.tokens === null || until.tokens > 0) return null;
  return until.estimated ? "expected" : "due";
}

/** "measured", "estimated", "unknown", "compacting", "stalled" or "stale". */
export function stateOf(view, nowMs) {
  const { state, stalled_from_ms: stalledMs, stale_from_ms: staleMs } = view.status;
  if (stalledMs !== null && nowMs >= stalledMs) return "stalled";
  if (staleMs !== null && nowMs >= staleMs) return "stale";
  return state;
}

/** Whether a chain is compacted again and again. */
export function isThrashing(view, nowMs) {
  return view.status.thrashing && nowMs < view.status.thrashing_until_ms;
}

/** Milliseconds since the open attempt gave a sign of life; null where no time is known. */
export function silence(view, nowMs) {
  const { last_sign_ms: lastMs } = view.status;
  return lastMs === null ? null : Math.max(0, nowMs - lastMs);
}

/** Whether a warning is a step on the way only: the timeline folds those of a window that is not filling up yet. */
export function isStep({ kind, data }) {
  return kind === "context_warning" && data.threshold_percent < thresholds.elevated_above_percent;
}

/** The severity that a warning's record stands for, which is shown as a triangle: "high", "critical", or null for a lower one. */
export function levelOf({ context_used_percent: used }) {
  if (used >= thresholds.critical_percent) return "critical";
  return used >= thresholds.high_percent ? "high" : null;
}

/** Milliseconds that the open attempt has taken so far; null where its start is unknown. */
export function running(attempt, nowMs) {
  return attempt.started_ms === null ? attempt.elapsed_ms : nowMs - attempt.started_ms;
}

/**
 * Why no size is known: "compacted" or "cleared", which the next response ends; "never": no
 * response has reported one. An epoch's `as_of_ms` is the time of what began it.
 */
export function whyUnknown(view) {
  const chain = leadingChain(view);
  if (chain.pending) return "compacted";
  const last = view.compactions.last.findLast((each) => each.chain === chain.chain && each.outcome === "succeeded");
  if (last !== undefined && last.time_ms !== null && last.time_ms === chain.as_of_ms) return "compacted";
  return chain.peak_tokens === null ? "never" : "cleared";
}

/** All compactions that succeeded. */
export function compactionCount(view) {
  const { manual, automatic, idle, unknown_trigger: unknownTrigger } = view.compactions;
  return manual + automatic + idle + unknownTrigger;
}

/**
 * What attempts without success are called: "failed" where that was reported of each, else "not
 * completed": some were blocked, or their outcome is unknown.
 */
export function failureName(view) {
  const { failed, last } = view.compactions;
  return last.filter((each) => each.outcome === "failed").length === failed ? "failed" : "not completed";
}
