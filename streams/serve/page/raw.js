// A session's records as they are, fetched only when the section is opened.

import { get, query, sessionPath } from "./api.js";
import { h, shown, text } from "./dom.js";
import { errorNote } from "./notes.js";

const SHOWN = 100;
const PAGE = 500;
/** A last part of more records than this is not read twice to see whether it became longer. */
const SHORT = 20;

/**
 * Follows a list that only grows, by cursors. The last part has none for what will come after
 * it, so it is asked for again; what is known already is the caller's to leave out.
 */
export class Tail {
  constructor(path, signal) {
    this.path = path;
    this.signal = signal;
    this.cursor = null;
    this.held = 0;
  }

  /** Return the records from the cursor on, and go on to the last one. */
  async fresh() {
    const all = [];
    for (;;) {
      // One less than there are: the answer's cursor is then just before the last.
      const limit = this.held > SHORT ? this.held - 1 : PAGE;
      const { records, next } = await get(`${this.path}${query({ after: this.cursor, limit })}`, { signal: this.signal });
      all.push(...records);
      this.held = next === null ? records.length : 0;
      if (next === null) return all;
      this.cursor = next;
    }
  }
}

export class RawRecords {
  constructor(id, signal) {
    this.id = id;
    this.signal = signal;
    this.after = null;
    this.stream = "events";
    this.pre = h("pre", { class: "raw", tabindex: "0", "aria-label": "Records" });
    this.more = h("button", { type: "button", class: "quiet", hidden: true, on: { click: () => this.#load() } }, "Show more");
    this.place = h("div");
    this.select = h("select", { "aria-label": "Which records", on: { change: () => {
      this.stream = this.select.value;
      this.#begin();
    } } }, h("option", { value: "events" }, "Events"), h("option", { value: "readings" }, "Readings"));
    this.el = h(
      "details",
      { class: "card raw-card" },
      h("summary", {}, h("h2", {}, "Raw records")),
      h("p", { class: "faint small" }, "As CloudEvents, one a line, the oldest first. A program reads them at ", h("code", {}, sessionPath(id, "/events")), "."),
      this.select, this.place, this.pre, this.more,
    );
    this.el.addEventListener("toggle", () => {
      if (this.el.open) this.#begin();
    });
  }

  #begin() {
    this.after = null;
    this.pre.replaceChildren();
    this.#load();
  }

  async #load() {
    const { stream } = this;
    this.place.replaceChildren();
    try {
      const path = sessionPath(this.id, `/${stream}${query({ after: this.after, limit: SHOWN })}`);
      const { records, next } = await get(path, { signal: this.signal });
      if (stream !== this.stream) return;
      const lines = records.map((record) => `${JSON.stringify(record)}\n`).join("");
      this.pre.append(text(lines || (this.after === null ? "No records." : "")));
      this.after = next;
      shown(this.more, next !== null);
    } catch (error) {
      if (!this.signal.aborted) this.place.replaceChildren(errorNote(error, () => this.#load()));
    }
  }
}
