// Where a session comes from and what goes on from it: its origin, its compactions as checkpoints, and its forks.

import { get, now, query } from "./api.js";
import { attr, css, h, icon, Keyed, setText, shown, text, texts } from "./dom.js";
import { count, duration, exact, moment, shortId, UNKNOWN } from "./format.js";
import { triggerWords } from "./receipt.js";
import { sessionLink } from "./row.js";
import { MAIN } from "./status.js";

/** Other sessions may begin with this one's history at any time; they are asked for now and then. */
const EVERY_MS = 30_000;
const MOST_FORKS = 200;
/** What needs no quotes in a shell. */
const PLAIN_WORD = /^[\w@%+=:,./-]+$/;

/** Reads a session's origin and forks now and then; `latest` has those that the server knows. */
export class Relatives {
  constructor(signal) {
    this.signal = signal;
    this.latest = { origin: null, forks: [] };
    this.readAt = null;
  }

  async read({ session_id: id, identity }) {
    if (this.readAt !== null && performance.now() - this.readAt < EVERY_MS) return;
    const origin = identity.forked_from;
    const listed = async (asked) => (await get(`v1/sessions${query(asked)}`, { signal: this.signal })).sessions;
    const [found, origins] = await Promise.all([listed({ q: id, limit: MOST_FORKS }), origin === null ? [] : listed({ id: origin })]);
    this.latest = {
      origin: origin === null ? null : { id: origin, view: origins[0] ?? null },
      forks: found.filter((view) => view.identity.forked_from === id).sort((a, b) => (a.first_ms ?? 0) - (b.first_ms ?? 0)),
    };
    this.readAt = performance.now();
  }
}

/** The stops of a session's main conversation in order: its compactions, and where it was cleared or taken back. */
export function stopsOf(items) {
  const of = items.filter((item) => item.chain === MAIN && (item.kind === "compaction" ? item.status === "done" : item.kind === "context_reset"));
  return of.reverse();
}

/** After how many of the stops a fork begins: after as many compactions as it has inherited. */
function columnOf(stops, { compactions: { inherited } }) {
  let passed = 0;
  const at = stops.findIndex((item) => item.kind === "compaction" && passed++ === inherited);
  return at < 0 ? stops.length : at;
}

/** The section: {el, set(view, items, relatives)}; hidden where there is neither a checkpoint nor a relative. */
export function lineagePart(announce) {
  const t = texts("about", "facts", "origin");
  const origin = h("a", { class: "mono" }, t.origin);
  const start = h("p", { class: "lineage-origin" }, h("span", { class: "faint" }, "Forked from "), origin);
  const end = h("li", { class: "lineage-end faint" }, "now");
  const row = h("ol", { class: "lineage-row", "aria-label": "Checkpoints" });
  const branches = h("ul", { class: "lineage-forks", "aria-label": "Forks" });
  let chosen = null;
  let latest = null;
  const stops = new Keyed(row, (stop) => stop.key, (stop) => stop.el ? { el: stop.el, update: () => {} } : stopItem(stop, choose));
  const forks = new Keyed(branches, ({ view }) => view.session_id, forkItem);
  const commands = [["Before it: all that the model saw", ""], ["After it: the summary, and what was kept", " --after"]]
    .map(([label, option]) => commandLine(label, option, announce));
  const detail = h("div", { class: "checkpoint" }, h("p", {}, t.facts), ...commands.map(({ el }) => el));
  const box = h("div", { class: "lineage", tabindex: "0", role: "group", "aria-label": "Checkpoints and forks" }, start, row, branches);
  const el = h("section", { class: "card", "aria-labelledby": "lineage-title", hidden: true },
    h("h2", { id: "lineage-title" }, "Checkpoints ", h("span", { class: "faint small" }, t.about)), box, detail);

  function choose(key) {
    chosen = key;
    show();
  }

  function show() {
    const { view, all, relatives } = latest;
    const checkpoints = all.filter((item) => item.kind === "compaction");
    const one = checkpoints.find((item) => item.key === chosen) ?? checkpoints.at(-1) ?? null;
    const { origin: from, forks: onwards } = relatives;
    shown(el, checkpoints.length > 0 || from !== null || onwards.length > 0);
    setText(t.about, [checkpoints.length ? count(checkpoints.length, "compaction") : null, onwards.length ? count(onwards.length, "fork") : null].filter(Boolean).join(" · "));
    setText(t.origin, from === null ? "" : shortId(from.id));
    attr(origin, "href", from?.view ? sessionLink(from.view) : null);
    attr(origin, "title", from?.id);
    shown(start, from !== null);
    stops.set([...all.map((item) => ({ ...item, isChosen: item === one })), { key: "end", el: end }]);
    // The last to branch off comes first, so that no line crosses a name.
    const branching = onwards.map((each) => ({ view: each, column: columnOf(all, each) })).sort((a, b) => b.column - a.column);
    forks.set(branching.map((each, at) => ({ ...each, at })));
    shown(branches, onwards.length > 0);
    shown(detail, one !== null);
    if (one === null) return;
    setText(t.facts, checkpointWords(one.document));
    for (const { set } of commands) set(view.session_id, one.document.number);
  }

  const set = (view, items, relatives) => {
    latest = { view, all: stopsOf(items), relatives };
    show();
  };
  return { el, set };
}

function stopItem({ key, kind }, choose) {
  const t = texts("number", "words");
  const isCompaction = kind === "compaction";
  const mark = isCompaction
    ? h("button", { type: "button", class: "lineage-dot", on: { click: () => choose(key) } }, h("span", { class: "sr" }, "Checkpoint "), t.number)
    : h("span", { class: "lineage-reset" }, icon("reset"), h("span", { class: "sr" }, t.words));
  const update = ({ document, data, isChosen }) => {
    if (!isCompaction) {
      setText(t.words, data.reason === "rollback" ? "The last turns were removed" : "Cleared");
      attr(mark, "title", t.words.data);
      return;
    }
    setText(t.number, exact(document.number));
    attr(mark, "title", checkpointWords(document));
    attr(mark, "aria-pressed", String(isChosen));
    attr(mark, "data-inherited", document.inherited);
  };
  return { el: h("li", {}, mark), update };
}

function forkItem() {
  const t = texts("id", "about");
  const link = h("a", { class: "mono" }, t.id);
  const el = h("li", {}, h("span", { class: "sr" }, "Fork "), link, " ", h("span", { class: "faint" }, t.about));
  const update = ({ view, column, at }) => {
    css(el, "--column", String(column));
    css(el, "--row", String(at));
    setText(t.id, shortId(view.session_id));
    attr(link, "href", sessionLink(view));
    attr(link, "title", view.session_id);
    const { inherited } = view.compactions;
    setText(t.about, `${inherited ? `after #${exact(inherited)}` : "before the first compaction"} · ${moment(view.last_ms, now())}`);
  };
  return { el, update };
}

function checkpointWords({ number, trigger, inherited, tokens_before: before, tokens_after: after, duration_ms: took, time_ms: at }) {
  const parts = [
    `#${exact(number)} ${trigger === null ? "unknown trigger" : triggerWords(trigger)}${inherited ? ", inherited" : ""}`,
    `${exact(before)} → ${exact(after)} tokens`,
    took === null ? null : duration(took),
    at === null ? `time ${UNKNOWN}` : moment(at, now()),
  ];
  return parts.filter(Boolean).join(" · ");
}

/** A command with a button that copies it. */
function commandLine(label, option, announce) {
  const t = texts("command", "copy");
  setText(t.copy, "Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(t.command.data);
      setText(t.copy, "Copied");
      announce("The command is in the clipboard.");
    } catch {
      setText(t.copy, "Select and copy it"); // without TLS there is no clipboard
    }
    setTimeout(() => setText(t.copy, "Copy"), 3_000);
  };
  const el = h("p", { class: "fork-command" }, h("span", { class: "faint" }, label), h("code", {}, t.command),
    h("button", { type: "button", class: "quiet", "aria-label": `Copy the command. ${label}`, on: { click: copy } }, t.copy));
  const set = (id, number) => setText(t.command, `contextgauge fork ${quoted(id)} ${number}${option} --install`);
  return { el, set };
}

function quoted(word) {
  return PLAIN_WORD.test(word) && !word.startsWith("-") ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
