// What the overview is searched, filtered and sorted by.

import { attr, h, icon, segments } from "./dom.js";
import { PRESETS, RUNTIMES } from "./filters.js";
import { SORT_WORDS } from "./order.js";

const TYPING_MS = 200;

export class Controls {
  /**
   * `filters`: the selection at first; `onChoose(change)` is called when the user changes it,
   * `onOpen(change)` for Enter in the search.
   */
  constructor(filters, onChoose, onOpen) {
    this.onChoose = onChoose;
    this.search = h("input", {
      type: "search", placeholder: "Search id, folder, model…", "aria-label": "Search sessions",
      value: filters.q, enterkeyhint: "search", spellcheck: "false", autocomplete: "off",
    });
    let typing = 0;
    this.search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => onChoose({ q: this.search.value.trim() }), TYPING_MS);
    });
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      clearTimeout(typing);
      onOpen({ q: this.search.value.trim() });
    });
    this.presets = segments("Show", PRESETS, filters.show, (show) => onChoose({ show }));
    this.models = h("select", { "aria-label": "Model" }, h("option", { value: "" }, "All models"));
    this.runtimes = h("select", { "aria-label": "Runtime" }, h("option", { value: "" }, "All runtimes"),
      ...RUNTIMES.map(([value, name]) => h("option", { value }, name)));
    this.sort = h("select", { "aria-label": "Order" }, ...SORT_WORDS.map(([value, name]) => h("option", { value }, name)));
    this.offer(filters.model, filters.runtime);
    for (const [name, select] of [["model", this.models], ["runtime", this.runtimes], ["sort", this.sort]]) {
      select.value = filters[name];
      select.addEventListener("change", () => onChoose({ [name]: select.value }));
    }
    this.el = h(
      "div",
      { class: "controls", role: "search", "aria-label": "Filter sessions" },
      h("label", { class: "search" }, icon("search"), this.search),
      this.presets.el,
      this.models,
      this.runtimes,
      this.sort,
    );
  }

  /** Say that titles are searched too: the server has some. */
  searchTitles() {
    attr(this.search, "placeholder", "Search title, id, folder…");
  }

  /** Offer a model too, and a runtime. */
  offer(model, runtime) {
    for (const [select, name] of [[this.models, model], [this.runtimes, runtime]]) {
      if (!name || [...select.options].some((option) => option.value === name)) continue;
      select.append(h("option", { value: name }, name));
    }
  }

  /** Offer these models, and no others but the selected one. */
  offerOnly(models) {
    for (const option of [...this.models.options].slice(1)) {
      if (!models.has(option.value) && !option.selected) option.remove();
    }
    for (const model of models) this.offer(model);
  }

  /** Show an order that was selected elsewhere. */
  markSort(sort) {
    this.sort.value = sort;
  }

  /** Take all filters back. */
  clear() {
    this.search.value = "";
    this.models.value = "";
    this.runtimes.value = "";
    this.presets.mark("");
    this.onChoose({ q: "", show: "", model: "", runtime: "" });
  }
}
