// Analytics' tables: compactions by trigger, and by model.

import { attr, h, Keyed, scrolling, setText, shown, text } from "./dom.js";
import { duration, exact, percent, tokens, UNKNOWN } from "./format.js";
import { countsOf, fasterWords, knownWords, messagesEach, percentileWords, remainingShare } from "./stats.js";

const TRIGGERS = [["automatic", "Automatic"], ["idle", "Idle session"], ["manual", "Manual"], ["unknown_trigger", "Unknown trigger"]];

const TRIGGER_HEADS = [
  "Trigger", "Compactions", "Size before, average", "median", "p95", "Duration, average", "median", "p95", "longest",
];

/** Sizes and durations of manual against automatic compactions. */
export class TriggerTable {
  #body = h("tbody");
  #words = text();

  constructor() {
    this.el = card("triggers", "Manual and automatic", h("p", {}, this.#words), h("table", { class: "figures" }, heads(TRIGGER_HEADS), this.#body));
  }

  set(total) {
    setText(this.#words, fasterWords(total));
    const rows = TRIGGERS.map(([name, words]) => [words, total[name]]).filter(([, { succeeded }]) => succeeded > 0);
    this.#body.replaceChildren(...rows.map(([words, { succeeded, pre_tokens: size, duration_ms: took }]) => row(words, [
      exact(succeeded), tokens(size.mean), ...["p50", "p95"].map((name) => percentileWords(size, name, tokens)), [duration(took.mean), knownWords(took)].filter(Boolean).join(" · "),
      ...["p50", "p95"].map((name) => percentileWords(took, name, duration)), duration(took.max),
    ])));
    shown(this.el, rows.length > 0);
  }
}

/** By model: each column's name, what it is sorted by, and its words: the figure, and more below. */
const COLUMNS = [
  ["Compactions", ({ counts }) => counts.succeeded, ({ counts }) => [exact(counts.succeeded), parts([counts.automatic, "automatic"], [counts.idle, "idle"], [counts.manual, "manual"], [counts.unknown_trigger, "unknown trigger"])]],
  ["Not completed", ({ counts }) => counts.ended - counts.succeeded, ({ counts }) => [exact(counts.ended - counts.succeeded), parts([counts.failed, "failed"], [counts.blocked, "blocked"], [counts.unknown, "unknown outcome"])]],
  ["Size before, average", ({ size }) => size.mean, ({ size }) => [tokens(size.mean), size.count ? `median ${percentileWords(size, "p50", tokens)}` : ""]],
  ["Duration, average", ({ took }) => took.mean, ({ took }) => [duration(took.mean), took.count ? `${knownWords(took)} · median ${percentileWords(took, "p50", duration)} · p95 ${percentileWords(took, "p95", duration)}` : ""]],
  ["Remains", ({ remains }) => remains, ({ remains }) => [remains === null ? UNKNOWN : percent(remains), ""]],
  ["Tokens saved", ({ saved }) => saved, ({ saved }) => [tokens(saved), ""]],
  ["Messages between", ({ each }) => each, ({ each }) => [exact(each), ""]],
];

/** Compactions by model, sorted by any column. */
export class ModelTable {
  #body = h("tbody");
  #by = "Compactions";
  #down = true;
  #models = [];
  #heads = new Map();
  #rows = new Keyed(this.#body, ({ model }) => model, modelRow);

  constructor() {
    const sorters = ["Model", ...COLUMNS.map(([name]) => name)].map((name) => {
      const head = h("th", { scope: "col" }, h("button", { type: "button", class: "sorter", on: { click: () => this.#sortBy(name) } }, name));
      this.#heads.set(name, head);
      return head;
    });
    this.el = card("models", "By model", h("table", { class: "figures models" }, h("thead", {}, h("tr", {}, ...sorters)), this.#body));
  }

  set(byModel) {
    this.#models = Object.entries(byModel).map(([model, aggregates]) => ({
      model, counts: countsOf(aggregates), size: aggregates.pre_tokens, took: aggregates.duration_ms,
      remains: remainingShare(aggregates), saved: aggregates.measured ? aggregates.saved_tokens : null, each: messagesEach(aggregates),
    }));
    this.#show();
  }

  /** Sort by a column; by the same one again the other way round. Names ascend at first, figures descend. */
  #sortBy(name) {
    this.#down = name === this.#by ? !this.#down : name !== "Model";
    this.#by = name;
    this.#show();
  }

  #show() {
    for (const [name, head] of this.#heads) attr(head, "aria-sort", name === this.#by ? (this.#down ? "descending" : "ascending") : null);
    const value = COLUMNS.find(([name]) => name === this.#by)?.[1];
    const byName = (a, b) => (a.model < b.model ? -1 : 1);
    const byFigure = (a, b) => {
      const [one, other] = [value(a), value(b)];
      if (one === null || other === null) return (one === null) - (other === null); // unknown ones last, either way
      return this.#down ? other - one : one - other;
    };
    const order = value === undefined ? (a, b) => (this.#down ? -byName(a, b) : byName(a, b)) : (a, b) => byFigure(a, b) || byName(a, b);
    this.#rows.set([...this.#models].sort(order));
  }
}

function modelRow({ model }) {
  const cells = COLUMNS.map(([, , words]) => ({ words, figure: text(), more: text() }));
  const el = h("tr", {}, h("th", { scope: "row" }, model), ...cells.map(({ figure, more }) => h("td", {}, figure, h("div", { class: "more" }, more))));
  const update = (item) => {
    for (const { words, figure, more } of cells) {
      const [first, second] = words(item);
      setText(figure, first);
      setText(more, second);
    }
  };
  return { el, update };
}

function parts(...pairs) {
  return pairs.filter(([number]) => number).map(([number, words]) => `${exact(number)} ${words}`).join(" · ");
}

function card(id, title, ...content) {
  const [table, ...before] = content.reverse();
  return h("section", { class: "card wide", "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...before,
    scrolling(title, table));
}

function heads(names) {
  return h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, name))));
}

function row(name, cells) {
  return h("tr", {}, h("th", { scope: "row" }, name), ...cells.map((cell) => h("td", {}, cell)));
}
