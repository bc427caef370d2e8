// The timeline's elements. Each is made once and updated in place: that of a compaction goes from
// running to done or failed.

import { now } from "./api.js";
import { attr, factList, h, icon, Keyed, plain, setText, setIcon, shown, text, texts } from "./dom.js";
import { ago, count, duration, elapsed, errorWords, exact, guess, moment, percent, sourceMeaning, tokens, UNKNOWN, usage, windowSource } from "./format.js";
import { outlook, windowNote } from "./gauge.js";
import { DURATION_SOURCES, receiptPart, triggerWords } from "./receipt.js";
import { chainName, levelOf, MAIN, silence, stateOf } from "./status.js";
import { tipped } from "./tip.js";
import { momentOf } from "./timeline.js";

/** Make an item's element: {el, update(item), tick?()}. `session()` gives the session's view, `costs` its costs. */
export function timelineItem(item, session, costs) {
  if (item.kind === "compaction") return compactionItem(item, session, costs);
  if (item.kind === "context_warning") return warningItem(item, session);
  if (item.kind === "steps") return stepsItem(session);
  return lineItem(item, session);
}

/** The name of a subagent's chain: it grows longer where another one begins like it. */
function chainBadge({ chain }, session) {
  const name = text();
  const write = () => setText(name, chain === MAIN ? "" : chainName(session(), chain));
  return { el: chain === MAIN ? null : h("span", { class: "badge" }, name), write };
}

function foldedRecords(current) {
  const pre = h("pre", { class: "raw", tabindex: "0" });
  const details = h("details", { class: "raw-of" }, h("summary", {}, "Records"), pre);
  const write = () => {
    if (!details.open) return;
    const written = plain(current().records.map((record) => JSON.stringify(record, null, 2)).join("\n"));
    if (pre.textContent !== written) pre.textContent = written;
  };
  details.addEventListener("toggle", write);
  return { el: details, write };
}

/** An item that is one line: its content, chain, time and records. */
function oneLine(item, session, look, content, more = null) {
  const when = text();
  const badge = chainBadge(item, session);
  const records = foldedRecords(() => item);
  const el = h("li", { class: `item ${look}`, "data-key": item.key }, ...content, badge.el, more, h("time", { class: "when" }, when), records.el);
  const update = () => {
    badge.write();
    setText(when, moment(item.time_ms, now()));
  };
  return { el, update };
}

/** Why the window of a record may be wrong: it is assumed, or its chain's compactions contradict it. */
function doubtOfItem({ chain, data }, view) {
  if (data.window_source === "default") return "assumed";
  return data.window_source === "catalog" ? (view?.status.window_doubts[chain] ?? null) : null;
}

function warningItem(item, session) {
  const { data } = item;
  const level = levelOf(data);
  const doubt = doubtOfItem(item, session());
  const words = h(
    "button",
    { type: "button", class: "warn-line" },
    level ? icon("warning") : null,
    usage(data.context_used_percent, doubt),
  );
  tipped(words, () => [
    h("p", {}, `Context window: ${exact(data.input_tokens)} input + ${exact(data.cache_tokens)} cache tokens`),
    h("p", {}, `Total capacity: ${guess(count(data.context_window, "token"), doubt)}`),
    h("p", { class: "faint" }, outlook(session(), session()?.chains[item.chain])),
    windowNote(data.window_source, doubt),
    h("p", { class: "faint" }, `Thresholds crossed: ${data.thresholds_crossed.map(percent).join(", ")} used`),
  ]);
  const sizes = h("span", { class: "faint" }, `${tokens(data.used_tokens)} of ${guess(tokens(data.context_window), doubt)}`);
  return oneLine(item, session, `warning ${level ?? ""}`.trim(), [words], sizes);
}

/** Steps between two milestones in one line; the steps themselves on demand. */
function stepsItem(session) {
  const t = texts("count", "span", "when");
  const list = h("ol", { class: "timeline" });
  const parts = new Keyed(list, (item) => item.key, (item) => timelineItem(item, session));
  const el = h("li", { class: "item steps" },
    h("details", {}, h("summary", {}, t.count, h("span", { class: "faint" }, t.span), h("time", { class: "when" }, t.when)), list));
  const update = ({ steps, time_ms: timeMs }) => {
    const thresholds = steps.map(({ data }) => data.threshold_percent);
    setText(t.count, count(steps.length, "step"));
    const [low, high] = [Math.min(...thresholds), Math.max(...thresholds)].map(percent);
    setText(t.span, low === high ? `at ${low} used` : `${low} to ${high} used`);
    setText(t.when, moment(timeMs, now()));
    parts.set(steps);
  };
  return { el, update };
}

const LINES = {
  context_reset: ["reset", (data) => `${data.reason === "rollback" ? "The last turns were removed" : `Conversation cleared (${data.reason})`}: the size is unknown until the next response`],
  context_edit: ["edit", (data) => `Content was removed without a compaction${data.cleared_input_tokens === null ? "" : `: ${count(data.cleared_input_tokens, "token")}`}`],
  context_exhausted: ["cross", (data) => `A turn stopped because the window was full: ${errorWords(data.reason)}${data.tokens_over ? `, ${count(data.tokens_over, "token")} over` : ""}`],
  session_info: ["info", (data) => ["Session", data.runtime, data.runtime_version, data.model, data.cwd].filter(Boolean).join(" · ")],
  context_limits: ["info", (data, doubt) => limitsWords(data, doubt)],
};

function limitsWords(data, doubt) {
  const parts = [data.window === null ? "Window unknown" : `Window ${guess(count(data.window, "token"), doubt)}`];
  if (data.window_source !== "unknown") parts.push(windowSource(data.window_source));
  if (data.auto_compact_enabled === false) parts.push("auto-compaction is off");
  else if (data.auto_compact_threshold !== null) parts.push(`compacts at ${exact(data.auto_compact_threshold)}`);
  return parts.join(" · ");
}

function lineItem(item, session) {
  const [sign, words] = LINES[item.kind] ?? ["info", () => item.kind];
  const doubt = doubtOfItem(item, session());
  const title = item.kind === "context_limits" ? sourceMeaning(item.data.window_source, doubt) : null;
  return oneLine(item, session, `line ${item.kind}`, [icon(sign), h("span", { class: "words", title }, words(item.data, doubt))]);
}

const SIGNS = { running: "spinner", stalled: "warning", done: "check", failed: "cross", lost: "unknown" };
const OUTCOMES = { failed: "Compaction failed", blocked: "Compaction was blocked", unknown: "Compaction ended, outcome unknown" };

/** An item's status to show: a running attempt may have stalled. */
export function statusOf(item, view, nowMs) {
  const isOpen = item.status === "running" && view.attempt?.attempt_id === item.attempt_id;
  return isOpen && stateOf(view, nowMs) === "stalled" ? "stalled" : item.status;
}

function compactionItem(first, session, costs) {
  let item = first;
  const t = texts("title", "note", "when");
  const badge = chainBadge(item, session);
  const sign = icon("spinner");
  const facts = factList();
  const summary = h("pre", { class: "summary-text", tabindex: "0" });
  const unfold = h("details", { class: "summary", hidden: true }, h("summary", {}, "Summary"), summary);
  const receipt = receiptPart();
  const raw = foldedRecords(() => item);
  const el = h(
    "li",
    { class: "item compaction", "data-key": item.key },
    h("div", { class: "compaction-head" }, sign, h("strong", {}, t.title), h("span", { class: "note-text" }, t.note),
      badge.el, h("time", { class: "when" }, t.when)),
    facts.el,
    receipt.el,
    unfold,
    raw.el,
  );
  const tick = () => {
    const nowMs = now();
    const view = session();
    const status = statusOf(item, view, nowMs);
    attr(el, "data-status", item.document?.inherited ? "inherited" : status);
    setIcon(sign, item.document?.inherited ? "info" : SIGNS[status]);
    const [title, more] = compactionWords(item, status, view, nowMs);
    setText(t.title, title);
    setText(t.note, more);
    setText(t.when, moment(momentOf(item), nowMs));
  };
  const update = (latest) => {
    item = latest;
    badge.write();
    tick();
    facts.set(factsOf(item));
    const isDone = item.status === "done";
    shown(receipt.el, isDone);
    if (isDone) receipt.update(item.document, costs.of(item.document.boundary_id));
    const words = item.document?.summary ?? null;
    shown(unfold, words !== null);
    if (words !== null && summary.textContent !== plain(words)) summary.textContent = plain(words);
    raw.write();
    shown(raw.el, item.records.length > 0);
  };
  return { el, update, tick };
}

function compactionWords(item, status, view, nowMs) {
  switch (status) {
    case "running": {
      const manual = item.trigger_reason === "manual";
      const used = item.used_percent === null ? "" : ` (${percent(item.used_percent)} context used)`;
      const what = manual ? "Manual compaction" : item.trigger_reason === null ? "Compaction" : "Automatic compaction";
      const began = item.started_ms === null ? null : elapsed(nowMs - item.started_ms);
      const beat = view?.attempt?.last_heartbeat_ms ?? null;
      const more = [began, beat === null ? "no heartbeat yet" : `heartbeat ${ago(beat, nowMs)}`];
      return [`${what} triggered${used}, please wait…`, more.filter(Boolean).join(" · ")];
    }
    case "stalled":
      return ["Compaction stalled", `no heartbeat for ${duration(silence(view, nowMs))}: is the agent still running?`];
    case "lost":
      return ["Compaction started", "outcome unknown"];
    case "failed":
      return [OUTCOMES[item.failure.outcome] ?? OUTCOMES.failed, item.failure.error === null ? "" : errorWords(item.failure.error)];
    default:
      if (item.document.inherited) return ["Inherited compaction", "of the history that was copied: it counts for the session that did it"];
      return ["Compaction completed", savedWords(item.document)];
  }
}

function savedWords({ tokens_saved: saved, complete: isComplete }) {
  if (saved !== null) return `(${count(saved, "token")} saved)`;
  return isComplete ? "(tokens saved: unknown)" : "(measured by the next response)";
}

function factsOf({ status, document, failure, used_tokens: used }) {
  if (status === "failed") return [["Took", duration(failure.duration_ms)]];
  if (status !== "done") return used === null ? [] : [["Before", count(used, "token")]];
  const took = duration(document.duration_ms);
  const known = DURATION_SOURCES[document.duration_source];
  const isAwaited = document.tokens_after === null && !document.complete;
  return [
    ["Trigger", triggerWords(document.trigger)],
    ["Tokens", `${exact(document.tokens_before)} → ${isAwaited ? "not measured yet" : exact(document.tokens_after)}`],
    ["Took", document.duration_ms !== null && known ? `${took}, ${known}` : took],
    // Of a copy both would be its place in this session, where it did not happen.
    ...(document.inherited ? [] : [["After", count(document.messages_since_last, "message")], ["Number", exact(document.number)]]),
  ];
}
