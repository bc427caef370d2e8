// All messages that are kept of a session, with a marker where each compaction came, expandable.

import { get, query, sessionPath } from "./api.js";
import { h, plain, setText, shown, text } from "./dom.js";
import { count, exact } from "./format.js";
import { markerWords, preview } from "./receipt.js";
import { MAIN } from "./status.js";

/** Messages in one answer. */
const PAGE = 100;
const COMPACTION = "context_compaction";

const INCOMPLETE = "Incomplete: a part of what the model sees is not kept.";

/** The section: {el, set(documents)}. It reads the messages each time that it is opened. */
export function messagesPart(address, signal) {
  let documents = [];
  let first = 0;
  const about = text();
  const note = h("p", { class: "faint small", role: "status" });
  const list = h("ol", { class: "messages" });
  const older = h("button", { type: "button", class: "quiet", hidden: true }, "Show older messages");
  const el = h(
    "details", { class: "card raw-card" },
    h("summary", {}, h("h2", {}, "Messages"), " ", h("span", { class: "faint small" }, about)),
    note, older, list,
  );
  const read = async (after, limit) => {
    const answer = await get(sessionPath(address, `/history${query({ after, limit })}`), { signal });
    const tools = toolNames(answer.messages);
    const numbered = documents.filter(({ chain }) => chain === MAIN);
    const agree = Math.max(0, ...numbered.map(({ number }) => number)) === answer.compactions;
    const known = new Map(agree ? numbered.map((each) => [each.number, each]) : []);
    list.prepend(...answer.messages.map((entry) => messageItem(entry, tools, known)));
    first = answer.first;
    setText(about, `${count(answer.active, "message")} in the context`);
    const dropped = first === answer.dropped && answer.dropped ? `${count(answer.dropped, "older message")} not kept.` : "";
    const archived = answer.archived ? "Grey: no longer in the context as it was." : "";
    note.textContent = [answer.state === "incomplete" ? INCOMPLETE : "", dropped, archived].filter(Boolean).join(" ");
    shown(older, first > answer.dropped);
  };
  const tried = async (after, limit) => {
    older.disabled = true;
    try {
      await read(after, limit);
    } catch (error) {
      if (!signal.aborted) note.textContent = plain(error.detail || error.message);
    } finally {
      older.disabled = false;
    }
  };
  older.addEventListener("click", () => tried(Math.max(0, first - PAGE), Math.min(first, PAGE)));
  el.addEventListener("toggle", () => {
    list.replaceChildren();
    if (el.open) tried(-PAGE, PAGE);
  });
  return { el, set: (latest) => { documents = latest; } };
}

/** One message, its text in short where it is long; of a compaction its marker with the summary. */
function messageItem({ active, message, compaction }, tools, known) {
  const parts = partsOf(message);
  if (compaction !== null) {
    const marker = parts.find(({ type }) => type === COMPACTION);
    return h("li", { class: "message marker" }, folded(markerOf(marker, known.get(compaction)), marker.summary));
  }
  const whole = parts.map((part) => partWords(part, tools, true)).filter(Boolean).join("\n") || "(nothing that can be shown)";
  const short = parts.map((part) => partWords(part, tools, false)).filter(Boolean).join(" ") || whole;
  return h(
    "li", { class: active ? "message" : "message archived" },
    h("span", { class: "role" }, message?.role ?? "", active ? null : h("span", { class: "sr" }, " (archived)")),
    short === whole ? h("span", { class: "words" }, whole) : folded(short, whole),
  );
}

function folded(short, whole) {
  return h("details", { class: "words" }, h("summary", {}, short), h("pre", { class: "summary-text", tabindex: "0" }, whole));
}

/** A marker's line, with what was measured of the compaction where that is known. */
function markerOf({ compaction_number: number, summary, messages_archived: archived, context_size_before: before }, document) {
  const own = { messages_archived: archived || null, tokens_before: before || null, tokens_saved: null, pins_lost: null };
  const receipt = document === undefined ? own : { ...own, tokens_saved: document.receipt.tokens_saved, pins_lost: document.receipt.pins_lost };
  return markerWords({ number, inherited: false, summary, receipt });
}

function partsOf(message) {
  const content = message?.content ?? [];
  return [...(Array.isArray(content) ? content : [{ type: "text", text: content }]), ...(message?.toolCalls ?? []).map((call) => ({ ...call, type: "tool-call" }))];
}

function toolNames(entries) {
  const calls = entries.flatMap(({ message }) => partsOf(message)).filter((part) => nameOf(part));
  return new Map(calls.map((part) => [part.toolCallId ?? part.id, nameOf(part)]));
}

function nameOf(part) {
  return part.toolName || part.name;
}

function partWords(part, tools, isWhole) {
  if (part.type === "text") return isWhole ? part.text : preview(part.text);
  const arguments_ = part.args ?? part.input;
  if (arguments_ !== undefined) {
    const written = JSON.stringify(arguments_);
    return `[${nameOf(part)} ${isWhole ? written : preview(written)}]`;
  }
  const result = part.result ?? part.output ?? part.content;
  if (result === undefined) return `[${part.type}]`;
  const written = typeof result === "string" ? result : JSON.stringify(result);
  const name = nameOf(part) || tools.get(part.toolCallId ?? part.tool_use_id) || "a tool";
  return isWhole ? `[result of ${name}]\n${written}` : `[result of ${name}: ${exact(written.length)} characters]`;
}
