// Help: the keys, and for each figure whether the runtime reports it.

import { h, scrolling } from "./dom.js";

const KEYS = [
  ["/", "search"],
  ["Enter", "in the search: open the first match"],
  ["↓ ↑, j k", "move between sessions"],
  ["Page Down, Page Up", "move by ten"],
  ["Enter", "open the session that has the focus"],
  ["Esc", "close a tooltip or this list"],
  ["?", "this list"],
];

/** Show the keys. */
export function showHelp() {
  const close = () => dialog.close();
  const rows = KEYS.map(([key, words]) => h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, key)), h("td", {}, words)));
  const dialog = h("dialog", { class: "help", "aria-labelledby": "help-title", on: { close: () => dialog.remove() } },
    h("h2", { id: "help-title" }, "Keys"),
    h("table", {}, h("tbody", {}, ...rows)),
    h("p", {}, h("a", { href: "#/figures", on: { click: close } }, "Where the figures come from")),
    h("button", { type: "button", class: "primary", autofocus: true, on: { click: close } }, "Close"));
  document.body.append(dialog);
  dialog.showModal();
}

/** Where each figure comes from, by runtime: the titles first. The server gives it. */
const [TITLES, ...FIGURES] = JSON.parse(document.querySelector('meta[name="figures"]').content);

const WORDS = [
  ["reported", "the runtime's own figure. A size is the sum of the parts that a response reports: input, cache written and cache read"],
  ["derived", "computed by contextgauge: the size before a compaction from the last response, the size after it from the next one, a duration from start to end, or that of the call that wrote the summary"],
  ["by name", "the window of the model's name in the bundled table; of a name that is not there, the default is assumed, marked ~"],
  ["arrival", "the time of publishing, if the message was published live; otherwise unknown"],
  ["unknown", "this runtime never reports it, so the page says unknown"],
  ["if sent", "an agent of another make gets what it sends in one of these formats"],
];

/** The page that says for each runtime which figures are whose. */
export class FiguresPage {
  hasFigures = false;

  constructor(host) {
    this.host = host;
  }

  start() {
    const label = "Figures by runtime";
    this.host.replaceChildren(
      h("div", { class: "page-head" }, h("h1", {}, "Where the figures come from")),
      h("section", { class: "card" },
        scrolling(label,
          h("table", { class: "figures sources" }, h("caption", { class: "sr" }, label),
            h("thead", {}, h("tr", {}, ...TITLES.map((name) => h("th", { scope: "col" }, name)))),
            h("tbody", {}, ...FIGURES.map(([figure, ...cells]) => h("tr", {}, h("th", { scope: "row" }, figure), ...cells.map(cell))))), "whole")),
      h("section", { class: "card" },
        h("dl", { class: "meanings" }, ...WORDS.flatMap(([word, meaning]) => [h("dt", {}, word), h("dd", {}, `${meaning}.`)])),
        h("p", { class: "faint" }, "All other figures are derived from these: percentages, warnings, growth, tokens until compaction, tokens saved, messages, and every average.")));
  }

  stop() {}

  hurry() {}
}

function cell(words) {
  return h("td", { class: words === "unknown" ? "faint" : null }, words);
}
