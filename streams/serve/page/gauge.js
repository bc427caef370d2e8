// The bar of a context, and the tooltip that takes it apart: on the overview and for a session.

import { attr, css, h, icon, setText, shown, texts } from "./dom.js";
import { count, exact, guess, percent, remaining, sourceMeaning, tokens, UNKNOWN, usage, windowSource } from "./format.js";
import { doubtOf, dueWord, severityOf, untilOf } from "./status.js";

const SEVERITY_WORDS = { high: ", high", critical: ", nearly full or about to be compacted" };

/** Make a gauge: {el, bind(view, chain)}: percentage, sizes, source of the window, bar. */
export function gauge() {
  const { share, rest, sizes, source, level } = texts("share", "rest", "sizes", "source", "level");
  const triangle = icon("warning");
  triangle.classList.add("triangle");
  const fill = h("i", { class: "fill" });
  const mark = h("i", { class: "mark" });
  const el = h(
    "div",
    { class: "gauge" },
    h(
      "div",
      { class: "gauge-line" },
      h("span", { class: "gauge-share" }, share, triangle, h("span", { class: "sr" }, level)),
      h("span", { class: "gauge-rest faint" }, rest),
      h("span", { class: "gauge-sizes" }, sizes, " ", h("span", { class: "faint" }, source)),
    ),
    h("div", { class: "bar", "aria-hidden": "true" }, fill, mark),
  );
  const bind = (view, chain) => {
    const [severity, doubt] = [severityOf(view, chain), doubtOf(view, chain)];
    attr(el, "data-severity", severity);
    attr(el, "data-state", chain.state);
    const known = chain.used_percent !== null;
    setText(share, known ? guess(percent(chain.used_percent), doubt) : chain.used_tokens === null ? UNKNOWN : "share unknown");
    setText(rest, known ? `used · ${guess(remaining(chain.used_percent), doubt)} context remaining` : "");
    setText(level, SEVERITY_WORDS[severity] ?? "");
    setText(sizes, sizesOf(chain, doubt));
    setText(source, chain.window === null && chain.window_source !== "exceeded" ? "" : `· ${windowSource(chain.window_source, chain.passed_window)}`);
    css(fill, "--used", String(known ? Math.min(chain.used_percent, 100) / 100 : 0));
    const threshold = untilOf(view, chain)?.threshold_tokens ?? null;
    const isKnown = threshold !== null && Boolean(chain.window);
    shown(mark, isKnown);
    if (isKnown) css(mark, "--at", String(Math.min(threshold / chain.window, 1)));
  };
  return { el, bind };
}

function sizesOf(chain, doubt) {
  const whole = chain.window === null ? "window unknown" : guess(tokens(chain.window), doubt);
  if (chain.used_tokens === null) return chain.window === null ? whole : `of ${whole}`;
  return chain.window === null ? `${tokens(chain.used_tokens)} · ${whole}` : `${tokens(chain.used_tokens)} of ${whole}`;
}

/** The tooltip's nodes: the parts of a chain's size, the window, and what will happen. */
export function breakdownTip(view, chain) {
  const [until, doubt] = [untilOf(view, chain), doubtOf(view, chain)];
  const meaning = until?.estimated ? untilMeaning(until) : "";
  const parts = chain.breakdown;
  const isUnknown = chain.used_tokens === null;
  return [
    chain.used_percent === null ? null : h("p", {}, usage(chain.used_percent, doubt)),
    h("p", {}, isUnknown ? "The size is unknown until the next response." : `Context window: ${sizeWords(chain)}`),
    h("p", { class: isUnknown ? "faint" : null }, `Total capacity: ${chain.window === null ? UNKNOWN : guess(count(chain.window, "token"), doubt)}`),
    chain.window_source ? windowNote(chain.window_source, doubt) : null,
    isUnknown ? null : h("p", { class: "faint" }, outlook(view, chain)),
    meaning ? h("p", { class: "faint" }, meaning) : null,
    isUnknown || !parts ? null : partsTable(parts, chain, until, doubt),
  ].filter((node) => node !== null);
}

function sizeWords({ breakdown: parts, used_tokens: used }) {
  if (!parts) return `${count(used, "token")}, estimated by the runtime`;
  const known = [parts.cache_creation_tokens, parts.cache_read_tokens].filter((part) => part !== null);
  const cache = known.length ? known.reduce((sum, part) => sum + part, 0) : null;
  return `${exact(parts.input_tokens)} input + ${exact(cache)} cache tokens`;
}

/** Where a window is known from. */
export function windowNote(source, doubt = null) {
  return h("p", { class: "faint" }, sourceMeaning(source, doubt));
}

/** What happens when a chain's context is full: as the runtime reports it, else as it was seen. */
export function outlook(view, chain) {
  const enabled = chain?.auto_compact_enabled ?? null;
  if (chain && untilOf(view, chain)?.source === "service") return "The compaction service compacts this session.";
  const offBy = chain && view?.status.switched_off_by?.[chain.chain];
  if (offBy) return `Automatic compaction is off, by ${offBy}.`;
  if (enabled === false) return "Automatic compaction is off.";
  const due = enabled === true ? dueWord(untilOf(view, chain)) : null;
  if (enabled === true) return due ? `Automatic compaction is ${due}.` : "Automatic compaction will trigger when context is low.";
  if (view?.compactions.automatic) return "This session has compacted automatically.";
  return "Unknown whether compaction is automatic.";
}

const UNTIL_MEANINGS = {
  service: (at) => `It does so at ${at}.`,
  reported: (at) => `The runtime reports that it compacts at ${at}.`,
  settings: (at, { setting, estimated }) => `By ${setting}, compaction is expected at ${estimated ? "about " : ""}${at}.`,
  configured: (at) => `Configured: compaction is expected at ${at}.`,
  learned_session: (at) => `Estimated: the last automatic compaction of this session began at ${at}.`,
  learned_model: (at) => `Estimated: automatic compactions of this model usually begin at about ${at}.`,
};

/** Where the tokens until compaction are known from; "" for nowhere, and for an estimate of none. */
export function untilMeaning(until) {
  if (until === null || (until.estimated && until.tokens === null)) return "";
  const { source, threshold_tokens: threshold, estimated } = until;
  const at = count(threshold, "token");
  if (source === "configured" && estimated) return `Configured as a part of the window, which is assumed or doubtful: at about ${at}.`;
  return UNTIL_MEANINGS[source](at, until);
}

function partsTable(parts, chain, until, doubt) {
  const row = (name, value, more = "", mark = null) => {
    const figure = guess(exact(value), mark);
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, more ? `${figure} · ${more}` : figure));
  };
  return h(
    "table",
    { class: "parts" },
    row("Input", parts.input_tokens),
    row("Cache written", parts.cache_creation_tokens),
    row("Cache read", parts.cache_read_tokens),
    row("Window", chain.window, windowSource(chain.window_source, chain.passed_window), doubt),
    row("Compacts at", until?.threshold_tokens ?? null, until?.estimated ? "estimated" : ""),
    row("Peak", chain.peak_tokens),
  );
}

const SPARK_W = 60;
const SPARK_H = 20;
const SPARK_BARS = 10;

/** The outline of the last steps of growth, one bar each: `d` of a path. */
export function sparkPath(steps) {
  const differences = steps.slice(-SPARK_BARS);
  const highest = Math.max(...differences, 1);
  const step = SPARK_W / SPARK_BARS;
  const skipped = SPARK_BARS - differences.length;
  return differences
    .map((size, index) => {
      const height = Math.max(1.5, (size / highest) * SPARK_H);
      const x = (skipped + index) * step + 1;
      return `M${x.toFixed(1)} ${SPARK_H}v${(-height).toFixed(1)}h${step - 2}v${height.toFixed(1)}z`;
    })
    .join("");
}

export const SPARK_BOX = `0 0 ${SPARK_W} ${SPARK_H}`;
