// One session's row on the overview.

import { now } from "./api.js";
import { attr, h, icon, setText, setIcon, shown, svg, texts } from "./dom.js";
import { ago, beginning, count, duration, elapsed, exact, folderNames, folderOf, roughly, shortId, shortIds, span, tokens, UNKNOWN } from "./format.js";
import { breakdownTip, gauge, SPARK_BOX, sparkPath, untilMeaning } from "./gauge.js";
import { isLive } from "./order.js";
import {
  compactionCount, doubtOf, failureName, dueWord, isThrashing, leadingChain, running, silence, stateOf, untilOf,
  whyUnknown,
} from "./status.js";
import { refreshTip, tipped } from "./tip.js";

export const STATE_ICONS = {
  measured: "dot", estimated: "estimate", unknown: "unknown", compacting: "spinner",
  stalled: "warning", stale: "clock",
};

const UNKNOWN_WORDS = { compacted: "unknown since compaction", cleared: "unknown since cleared", never: "not measured yet" };

/** A model's date, which a row has no room for; the session's page has the whole name. */
const DATED = /-(?:\d{8}|\d{4}-\d{2}-\d{2})$/;

/** The columns, and what each sorts by. */
export const COLUMNS = [
  ["Session", "folder"], ["Context", "pressure"], ["Until compaction", "until"], ["Growth", "growth"], ["Compactions", "compactions"],
  ["State, last activity", "recent"],
];

/** Where this page has a session. */
export function sessionLink({ address }) {
  return `#/session/${address}`;
}

/** Give items the names by which they are told apart in their list: `short` of an id, `folder`. */
export function nameRows(items) {
  const shorts = shortIds(items.map((item) => item.id));
  const folders = folderNames(items.map((item) => item.view.identity.cwd ?? ""));
  for (const item of items) Object.assign(item, { short: shorts.get(item.id), folder: folders.get(item.view.identity.cwd ?? "") });
}

/** State in words: [what, more]. */
export function stateWords(view, state, nowMs) {
  const chain = leadingChain(view);
  switch (state) {
    case "compacting":
    case "stalled": {
      if (view.attempt === null) return [state, lastWords(view, nowMs)];
      const { started_ms: startedMs, last_heartbeat_ms: beat } = view.attempt;
      if (state === "stalled") return [`stalled, silent for ${duration(silence(view, nowMs))}`, `began ${ago(startedMs, nowMs)}`];
      const took = running(view.attempt, nowMs);
      return [
        took === null ? state : `${state} ${elapsed(took)}`,
        beat === null ? "no heartbeat yet" : `heartbeat ${ago(beat, nowMs)}`,
      ];
    }
    case "unknown":
      return [UNKNOWN_WORDS[whyUnknown(view)], lastWords(view, nowMs)];
    case "stale":
      return [`quiet for ${span(nowMs - view.status.last_active_ms)}`, `${chain.state} ${ago(chain.as_of_ms ?? view.status.last_active_ms, nowMs)}`];
    default:
      return [state, lastWords(view, nowMs)];
  }
}

function lastWords(view, nowMs) {
  const { last_active_ms: lastMs } = view.status;
  return lastMs === null ? "time unknown" : ago(lastMs, nowMs);
}

/** Tokens until compaction in words: [figure, more]; `~` stands before an estimate. */
export function untilWords(view, chain) {
  const until = untilOf(view, chain);
  if (chain.auto_compact_enabled === false && until?.source !== "service") return ["off", "no auto-compaction"];
  if (until === null || until.tokens === null) return [UNKNOWN, ""];
  const mark = until.estimated ? "~" : "";
  const due = dueWord(until);
  if (due !== null) return [due, until.tokens ? `${mark}${tokens(-until.tokens)} over` : ""];
  const figure = `${mark}${tokens(until.tokens)}`;
  const left = until.responses;
  if (left === null) return [figure, ""];
  return [figure, left < 1 ? "next response" : `~${count(roughly(left), "response")}`];
}

/** What stands before the figure of `untilWords` where no column's head names it. */
function untilLabel(figure) {
  return { off: "automatic compaction: ", due: "compaction: ", expected: "compaction: " }[figure] ?? "until compaction: ";
}

/** Compactions in words: [figure, more, failures]. */
export function compactionWords(view) {
  const { manual, automatic, idle, unknown_trigger: unknownTrigger, failed, inherited } = view.compactions;
  const kinds = [[automatic, "auto"], [idle, "idle"], [manual, "manual"], [unknownTrigger, "unknown trigger"], [inherited, "inherited"]];
  const words = kinds.filter(([number]) => number).map(([number, name]) => `${exact(number)} ${name}`);
  return [exact(compactionCount(view)), words.join(" · "), failed ? `${exact(failed)} ${failureName(view)}` : ""];
}

/** Make a row for any session: {el, item, update(item), focus()}. */
export function sessionRow() {
  const t = texts("name", "id", "title", "about", "untilLabel", "until", "untilMore", "grown", "count", "countLabel", "countMore", "failed", "state", "stateMore");
  const link = h("a", { class: "row-link" }, h("span", { class: "row-name" }, t.name), h("span", { class: "mono faint" }, t.id));
  const meter = gauge();
  const path = svg("path", {});
  const spark = svg("svg", { viewBox: SPARK_BOX, class: "spark", "aria-hidden": "true" }, path);
  const sign = icon("dot");
  const thrash = h("span", { class: "badge", hidden: true }, "thrash");
  const cell = (name, ...children) => h("div", { role: "cell", class: `c-${name}` }, ...children);
  const title = h("div", { class: "more row-title", hidden: true }, t.title);
  const until = h("div", { class: "figure" }, h("span", { class: "label-narrow" }, t.untilLabel), t.until);
  const compactions = h("div", { class: "figure" }, t.count, h("span", { class: "label-narrow" }, t.countLabel), thrash);
  const context = cell("context", meter.el);
  const untilCell = cell("until", until, h("div", { class: "more" }, t.untilMore));
  const el = h(
    "div",
    { role: "row", class: "row" },
    cell("session", link, title, h("div", { class: "more about" }, t.about)),
    context,
    untilCell,
    cell("growth", spark, h("div", { class: "more" }, t.grown)),
    cell("count", compactions, h("div", { class: "more" }, t.countMore, h("span", { class: "bad" }, t.failed))),
    cell("state", h("div", { class: "state" }, sign, h("span", {}, t.state)), h("div", { class: "more" }, t.stateMore)),
  );
  const row = { el, item: null, focus: () => link.focus(), update };

  function update(item) {
    row.item = item;
    const { view } = item;
    const nowMs = now();
    const chain = leadingChain(view);
    const state = stateOf(view, nowMs);
    const folder = item.folder ?? folderOf(view);
    attr(el, "data-state", state);
    attr(el, "data-id", view.session_id);
    attr(el, "data-past", !isLive(view, nowMs));
    attr(el, "data-divides", item.divides);
    attr(link, "href", sessionLink(view));
    attr(link, "title", titleOf(view, chain, state, nowMs));
    const short = item.short ?? shortId(view.session_id);
    setText(t.name, folder || short);
    setText(t.id, folder ? short : "");
    setText(t.title, view.title ?? "");
    shown(title, view.title !== null);
    setText(t.about, aboutOf(view, chain));
    meter.bind(view, chain);
    const [left, more] = untilWords(view, chain);
    setText(t.untilLabel, untilLabel(left));
    writePair(t.until, t.untilMore, [left, more]);
    attr(until, "data-quiet", left === UNKNOWN || left === "off");
    attr(path, "d", sparkPath(chain.differences));
    setText(t.grown, grownWords(chain));
    const [number, kinds, failed] = compactionWords(view);
    writePair(t.count, t.countMore, [number, kinds]);
    setText(t.countLabel, number === "1" ? " compaction" : " compactions");
    attr(compactions, "data-quiet", number === "0");
    setText(t.failed, failed && kinds ? ` · ${failed}` : failed);
    shown(thrash, isThrashing(view, nowMs));
    setIcon(sign, STATE_ICONS[state]);
    writePair(t.state, t.stateMore, stateAndBeginning(view, state, nowMs));
    refreshTip(context);
  }

  const meaning = () => row.item && untilMeaning(untilOf(row.item.view, leadingChain(row.item.view)));
  tipped(context, () => row.item && breakdownTip(row.item.view, leadingChain(row.item.view)), { trigger: link });
  for (const each of [context, untilCell]) each.addEventListener("click", () => link.click()); // above the link, for their tooltips
  const rate = () => untilOf(row.item.view, leadingChain(row.item.view))?.responses != null && `Responses are estimated by the growth: ${meanWords(leadingChain(row.item.view))}.`;
  tipped(untilCell, () => (meaning() ? [meaning(), rate()].filter(Boolean).map((words) => h("p", {}, words)) : null));
  return row;
}

function writePair(first, second, [figure, more]) {
  setText(first, figure);
  setText(second, more);
}

/** The whole of what a narrow column may cut off: the link is over all of the row. */
function titleOf(view, chain, state, nowMs) {
  const isLong = state === "unknown" || state === "stalled";
  return [
    view.session_id,
    view.title,
    view.identity.cwd,
    aboutOf(view, chain),
    beginningWords(view, nowMs),
    meanWords(chain),
    compactionWords(view).slice(1).filter(Boolean).join(" · "),
    isLong ? stateWords(view, state, nowMs)[0] : "",
  ].filter(Boolean).join("\n");
}

function grownWords(chain) {
  return chain.growth_tokens === null ? "" : `+${tokens(chain.growth_tokens)} a response`;
}

/** State in words, with when the session began: those of one folder are told apart by it. */
function stateAndBeginning(view, state, nowMs) {
  const [what, more] = stateWords(view, state, nowMs);
  const began = beginningWords(view, nowMs);
  if (began === "" || state === "compacting" || state === "stalled") return [what, more];
  return [what, state === "stale" ? began : `${more} · ${began}`];
}

function beginningWords({ first_ms: firstMs }, nowMs) {
  return firstMs === null ? "" : `began ${beginning(firstMs, nowMs)}`;
}

/** The growth, and of what it is the mean; "" where it is unknown. */
export function meanWords(chain) {
  const { length } = chain.differences;
  return length > 1 ? `${grownWords(chain)}, mean of the last ${length}` : grownWords(chain);
}

function aboutOf(view, chain) {
  const { runtime, publisher_agent_id: agent } = view.identity;
  const subagents = Object.keys(view.chains).length - (view.chains.main ? 1 : 0);
  return [
    (chain.model ?? view.identity.model ?? "model unknown").replace(DATED, ""),
    subagents ? count(subagents, "subagent") : null, // before what a narrow column may cut off
    runtime,
    agent === null ? null : `agent ${agent}`,
  ].filter(Boolean).join(" · ");
}

