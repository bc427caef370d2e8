// Which sessions are shown: from the address, and as parameters of the API.

import { query } from "./api.js";
import { DEFAULT_SORT, isSort } from "./order.js";
import { leadingChain, stateOf } from "./status.js";

export const PRESETS = [
  ["", "All"],
  ["high", "80% and more"],
  ["compacting", "Compacting"],
  ["unknown", "Unknown"],
];

const NAMES = document.querySelector('meta[name="runtimes"]').content.split(" ");

/** The runtimes: their values in the API, which the server gives, and their names here. */
export const RUNTIMES = [...NAMES.map((name) => [name, name]), ["unknown", "Unknown runtime"]];

export function readFilters(parameters) {
  const sort = parameters.get("sort");
  return {
    q: parameters.get("q") ?? "",
    show: PRESETS.some(([value]) => value === parameters.get("show")) ? parameters.get("show") : "",
    model: parameters.get("model") ?? "",
    runtime: RUNTIMES.some(([value]) => value === parameters.get("runtime")) ? parameters.get("runtime") : "",
    agent: parameters.get("agent") ?? "",
    sort: isSort(sort) ? sort : DEFAULT_SORT,
  };
}

export function addressOf(filters) {
  return `#/${query({ ...filters, sort: filters.sort === DEFAULT_SORT ? "" : filters.sort })}`;
}

export function serverFilters({ q, show, model, runtime, agent, sort }) {
  return {
    sort, q, model, runtime, agent, live_first: true,
    state: show === "compacting" || show === "unknown" ? show : "",
    min_percent: show === "high" ? 80 : "",
  };
}

export function isFiltered({ q, show, model, runtime, agent }) {
  return Boolean(q || show || model || runtime || agent);
}

const BEGINS = new Set(["compaction_start", "compaction_progress"]);

/**
 * Whether a live entry may bring a session into the list; then the server is asked. `view`: what
 * is known of the session, undefined for nothing. An entry does not hold what a search looks at.
 */
export function mayFit(entry, view, { q, show, model, runtime }) {
  if (show === "high" && (entry.used_percent ?? 0) < 80) return false;
  if (show === "compacting" && !BEGINS.has(entry.kind)) return false;
  if (show === "unknown" && entry.state !== "unknown") return false;
  if (view === undefined) return true;
  return !(q && !show) && fits(view, { show: "", model, runtime }, 0);
}

/** Whether a session still belongs into the list, as far as its view shows. */
export function fits(view, { show, model, runtime }, nowMs) {
  const chain = leadingChain(view);
  if (model && chain.model !== model) return false;
  if (runtime && (view.identity.runtime ?? "unknown") !== runtime) return false;
  if (show === "high") return (chain.used_percent ?? 0) >= 80;
  if (show === "compacting") return ["compacting", "stalled"].includes(stateOf(view, nowMs));
  if (show === "unknown") return stateOf(view, nowMs) === "unknown";
  return true;
}
