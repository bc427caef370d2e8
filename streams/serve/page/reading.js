// How much of this machine's transcripts has been read, in the page's head: of `contextgauge view`.

import { h, setText, text } from "./dom.js";
import { exact } from "./format.js";

/** Whether transcripts are still unread; false on a server that reads none. */
export function isReading(reading) {
  return reading !== null && reading.read_bytes < reading.bytes;
}

/** A bar with a figure, gone once everything has been read. */
export class ReadingBar {
  #words = text("");
  #bar = h("progress", { "aria-label": "Transcripts read" });
  #el = h("span", { class: "reading" }, this.#bar, h("span", {}, this.#words));

  /** `place`: what it stands before. */
  constructor(place) {
    this.place = place;
  }

  show(reading) {
    if (!isReading(reading)) {
      this.#el.remove();
      return;
    }
    this.#bar.max = reading.bytes;
    this.#bar.value = reading.read_bytes;
    setText(this.#words, `${exact(reading.read_files)} of ${exact(reading.files)} transcripts`);
    if (!this.#el.isConnected) this.place.before(this.#el);
  }
}
