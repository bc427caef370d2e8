// A session's records as they are.

import { get, query } from "./api.js";
import { h, plain, shown } from "./dom.js";

const SHOWN = 100;
const PAGE = 500;
/** A last part of more records than this is not read twice to see whether it became longer. */
const SHORT = 20;

/**
 * Follows a list that only grows, by cursors. The last part has none for what will come after
 * it, so it is asked for again, and what is known already is left out.
 */
export class Tail {
  #cursor = null;
  #held = 0;
  #known = new Set();
  records = [];

  constructor(path, signal) {
    this.path = path;
    this.signal = signal;
  }

  /** Read the records from the cursor on, and go on to the last one. */
  async read() {
    for (;;) {
      // One less than there are: the answer's cursor is then just before the last.
      const limit = this.#held > SHORT ? this.#held - 1 : PAGE;
      const { records, next } = await get(`${this.path}${query({ after: this.#cursor, limit })}`, { signal: this.signal });
      for (const record of records) {
        if (!this.#known.has(record.id)) this.records.push(record);
        this.#known.add(record.id);
      }
      this.#held = next === null ? records.length : 0;
      if (next === null) return;
      this.#cursor = next;
    }
  }
}

/** Make the section that shows records when it is opened. `recordsOf(stream)` returns those that were read. */
export function rawRecords(path, recordsOf) {
  let limit = SHOWN;
  const pre = h("pre", { class: "raw", tabindex: "0", "aria-label": "Records" });
  const write = () => {
    const records = recordsOf(select.value);
    const lines = records.slice(0, limit).map((record) => `${JSON.stringify(record)}\n`);
    pre.textContent = plain(lines.join("")) || "No records.";
    shown(more, records.length > limit);
  };
  const begin = () => {
    limit = SHOWN;
    write();
  };
  const more = h("button", { type: "button", class: "quiet", hidden: true, on: { click: () => {
    limit += SHOWN;
    write();
  } } }, "Show more");
  const select = h("select", { "aria-label": "Which records", on: { change: begin } },
    h("option", { value: "events" }, "Events"), h("option", { value: "readings" }, "Readings"));
  const el = h(
    "details",
    { class: "card raw-card", on: { toggle: () => el.open && begin() } },
    h("summary", {}, h("h2", {}, "Raw records")),
    h("p", { class: "faint small" }, "As CloudEvents, one a line, the oldest first. A program reads them at ", h("code", {}, path), "."),
    select, pre, more,
  );
  return el;
}
