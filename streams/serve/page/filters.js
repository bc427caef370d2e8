// What of the sessions is shown, as the address tells it and as the server is asked for it.

import { query } from "./api.js";
import { mainChain, stateOf } from "./judge.js";

export const PRESETS = [
  ["", "All"],
  ["high", "80% and more"],
  ["compacting", "Compacting"],
  ["unknown", "Unknown"],
];

/** The runtimes there are, as the server is asked for them, and what they are called. */
export const RUNTIMES = [
  ...["claude-code", "codex", "gemini", "openai", "other"].map((name) => [name, name]),
  ["unknown", "Runtime not told"],
];

export function readFilters(parameters) {
  const sort = parameters.get("sort");
  return {
    q: parameters.get("q") ?? "",
    show: PRESETS.some(([value]) => value === parameters.get("show")) ? parameters.get("show") : "",
    model: parameters.get("model") ?? "",
    runtime: RUNTIMES.some(([value]) => value === parameters.get("runtime")) ? parameters.get("runtime") : "",
    agent: parameters.get("agent") ?? "",
    sort: sort === "recent" ? "recent" : "pressure",
  };
}

export function addressOf(filters) {
  return `#/${query({ ...filters, sort: filters.sort === "pressure" ? "" : filters.sort })}`;
}

export function serverFilters({ q, show, model, runtime, agent, sort }) {
  return {
    sort, q, model, runtime, agent,
    state: show === "compacting" || show === "unknown" ? show : "",
    min_percent: show === "high" ? 80 : "",
  };
}

export function isFiltered({ q, show, model, runtime, agent }) {
  return Boolean(q || show || model || runtime || agent);
}

const BEGINS = new Set(["compaction_start", "compaction_progress"]);

/**
 * Whether a live entry may bring a session into what is shown, which the server is then asked.
 * `view`: what is known of it, undefined for nothing. What is searched for is not in an entry.
 */
export function mayFit(entry, view, { q, show, model, runtime }) {
  if (show === "high" && (entry.used_percent ?? 0) < 80) return false;
  if (show === "compacting" && !BEGINS.has(entry.kind)) return false;
  if (show === "unknown" && entry.state !== "unknown") return false;
  if (view === undefined) return true;
  return !(q && !show) && fits(view, { show: "", model, runtime }, 0);
}

/** Whether a session still belongs to what is shown, as far as its view tells. */
export function fits(view, { show, model, runtime }, nowMs) {
  const chain = mainChain(view);
  if (model && chain.model !== model) return false;
  if (runtime && (view.identity.runtime ?? "unknown") !== runtime) return false;
  if (show === "high") return (chain.used_percent ?? 0) >= 80;
  if (show === "compacting") return ["compacting", "stalled"].includes(stateOf(view, nowMs));
  if (show === "unknown") return chain.state === "unknown";
  return true;
}
