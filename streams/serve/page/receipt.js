// The receipt of a compaction: one line that tells what it did, and on demand every figure of it.

import { profitFacts, withMoney } from "./costs.js";
import { attr, factList, h, Keyed, setText, shown, text } from "./dom.js";
import { count, duration, errorWords, exact, UNKNOWN } from "./format.js";

const PREVIEW_CHARACTERS = 80;
const TRIGGERS = { manual: "manual", auto: "automatic", idle: "idle session" };
export const DURATION_SOURCES = {
  reported: "reported by the runtime", paired: "from start to end",
  derived: "by the call that wrote the summary",
  precomputed: "in the background: nobody waited",
};
const BEFORE_SOURCES = { reported: "reported by the runtime", last_reading: "of the last response" };

/** What set a compaction off, in a word. */
export function triggerWords(trigger) {
  return TRIGGERS[trigger] ?? UNKNOWN;
}

/** The receipt's element: {el, update(document, profit)}. It is closed at first. */
export function receiptPart() {
  const marker = text();
  const facts = factList();
  const list = h("ul", {});
  const parts = new Keyed(list, ([index]) => index, () => {
    const words = text();
    return { el: h("li", {}, words), update: ([, turn]) => setText(words, turn) };
  });
  const title = h("p", { hidden: true }, "Lost turns of the user");
  const more = h("p", { class: "faint", hidden: true }, "The lost turns are not published.");
  const el = h("details", { class: "receipt" }, h("summary", {}, marker), facts.el, h("div", { class: "lost-pins" }, title, list, more));
  const update = (document, profit) => {
    const { receipt } = document;
    setText(marker, markerWords(document));
    attr(el, "data-lost", receipt.pins_lost ? String(receipt.pins_lost) : null);
    facts.set(factsOf(receipt, profit));
    const lost = receipt.lost_pins ?? [];
    shown(title, lost.length > 0);
    shown(list, lost.length > 0);
    parts.set(lost.map((turn, index) => [String(index), turn]));
    const hidden = (receipt.pins_lost ?? 0) - lost.length;
    shown(more, hidden > 0);
    more.textContent = lost.length === 0 ? "The lost turns are not published." : `and ${exact(hidden)} more`;
  };
  return { el, update };
}

/** Number, archived messages, tokens and a preview of the summary. */
export function markerWords({ number, receipt, summary, inherited }) {
  const { messages_archived: archived, tokens_saved: saved, tokens_before: before, pins_lost: lost } = receipt;
  const sizes = saved !== null ? `${count(saved, "token")} freed` : before !== null ? `${count(before, "token")} before` : null;
  const parts = [
    inherited ? "Inherited compaction" : `Context compacted #${number}`,
    archived === null ? null : `${count(archived, "message")} archived`,
    sizes,
    lost ? `~${count(lost, "turn")} of the user lost` : null,
    summary === null ? null : preview(summary),
  ];
  return parts.filter(Boolean).join(" · ");
}

export function preview(summary) {
  const line = [...summary.slice(0, 10 * PREVIEW_CHARACTERS).replace(/\s+/g, " ").trim()];
  return line.length <= PREVIEW_CHARACTERS ? line.join("") : `${line.slice(0, PREVIEW_CHARACTERS - 3).join("").trimEnd()}...`;
}

function factsOf(receipt, profit) {
  return [
    ["Trigger", triggerAndReason(receipt)],
    ["Before", sized(receipt.tokens_before, BEFORE_SOURCES[receipt.tokens_before_source])],
    ["After", sized(receipt.tokens_after, receipt.tokens_after_source === null ? null : "of the next response")],
    ["Writing the summary", withMoney(costWords(receipt), profit?.summary)],
    ["Written to the cache again", withMoney(sized(receipt.cache_rewrite_tokens, null), profit?.rewrite)],
    ...profitFacts(profit),
    ["Duration", receipt.duration_ms === null ? UNKNOWN : withSource(duration(receipt.duration_ms), DURATION_SOURCES[receipt.duration_source])],
    ["Messages archived", exact(receipt.messages_archived)],
    ["User's turns carried over", exact(receipt.pins_carried)],
    ["User's turns", receipt.pins_kept === null ? UNKNOWN : `~${exact(receipt.pins_kept)} kept, ~${exact(receipt.pins_lost)} lost`],
    ["Command", receipt.command_id === null ? null : commandWords(receipt)],
    ["Caused by record", receipt.cause_id],
    ["Receipt", receipt.id],
  ].filter(([, words]) => words !== null);
}

function triggerAndReason({ trigger, reason }) {
  return reason === null ? triggerWords(trigger) : `${triggerWords(trigger)}: ${errorWords(reason)}`;
}

function commandWords({ command_id: id, command_attempt: attempt }) {
  return attempt === null ? id : `${id}, attempt ${attempt}`;
}

function costWords({ summary_input_tokens: read, summary_cache_read_tokens: cached, summary_output_tokens: written }) {
  if (read === null && written === null) return UNKNOWN;
  const part = cached ? ` (${exact(cached)} from the cache)` : "";
  const input = read === null ? "input unknown" : `${exact(read)} read`;
  return `${input}${part}, ${written === null ? "output unknown" : `${exact(written)} written`}`;
}

function sized(tokens, source) {
  return tokens === null ? UNKNOWN : withSource(count(tokens, "token"), source);
}

function withSource(words, source) {
  return source ? `${words}, ${source}` : words;
}
