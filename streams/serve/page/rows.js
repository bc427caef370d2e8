// The overview's long list: only the rows in sight have elements. A row's element stays with its
// session while that is in sight; one that leaves gives its element to one that comes. So an
// update never makes an element, and the order of the document is the order on the screen.

import { attr, Keyed } from "./dom.js";

/** Rows beyond both edges of the screen, for the Tab key and for quick scrolling. */
const BEYOND = 6;

/** A pointer that has not moved for so long was only left there. */
const POINTED_MS = 5_000;

export class Rows {
  /**
   * `make()` → {el, item, update(item), focus()}; `keyOf(item)`; `onNeed(index)` gets the last row
   * in sight, so that more can be fetched.
   */
  constructor({ host, make, keyOf, onNeed }) {
    this.host = host;
    this.keyOf = keyOf;
    this.onNeed = onNeed;
    this.items = [];
    this.total = 0;
    this.spare = [];
    const enter = () => {
      const row = this.spare.pop() ?? make();
      row.el.hidden = false;
      return row;
    };
    this.mounted = new Keyed(host, keyOf, enter, (row) => this.spare.push(row));
    this.first = 0;
    this.frame = 0;
    this.pointedAt = -POINTED_MS;
    host.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") this.pointedAt = performance.now();
    });
    this.schedule = () => {
      if (this.frame === 0) this.frame = requestAnimationFrame(() => this.render());
    };
    addEventListener("scroll", this.schedule, { passive: true });
    addEventListener("resize", this.schedule);
  }

  stop() {
    removeEventListener("scroll", this.schedule);
    removeEventListener("resize", this.schedule);
    cancelAnimationFrame(this.frame);
    this.frame = -1;
  }

  /** Show these, of `total` that there are. */
  set(items, total) {
    this.items = items;
    this.total = Math.max(total, items.length);
    this.schedule();
  }

  rowHeight() {
    return Number.parseFloat(getComputedStyle(this.host).getPropertyValue("--row")) || 64;
  }

  render() {
    this.frame = 0;
    const height = this.rowHeight();
    const top = this.host.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / height) - BEYOND);
    const last = Math.min(this.items.length, Math.ceil((innerHeight - top) / height) + BEYOND);
    this.first = Math.min(first, Math.max(0, this.items.length - 1));
    const visible = this.items.slice(this.first, Math.max(last, this.first));
    this.mounted.set(visible);
    visible.forEach((item, index) => {
      const { el } = this.mounted.parts.get(this.keyOf(item));
      attr(el, "aria-rowindex", this.first + index + 2); // the head is row 1
    });
    for (const row of this.spare) row.el.hidden = true;
    this.host.style.setProperty("padding-top", `${this.first * height}px`);
    const below = Math.max(0, this.total - this.first - visible.length);
    this.host.style.setProperty("padding-bottom", `${below * height}px`);
    this.onNeed(Math.min(this.total, Math.ceil((innerHeight - top) / height) + BEYOND) - 1);
  }

  /** Write again what is in sight; `keys`: only these. */
  refresh(keys = null) {
    for (const [key, row] of this.mounted.parts) {
      if (keys === null || keys.has(key)) row.update(row.item);
    }
  }

  /** Whether the user points at the list or moves through it by keyboard. */
  isHeld() {
    return performance.now() - this.pointedAt < POINTED_MS || this.host.querySelector(":focus-visible") !== null;
  }

  /** The row that has the focus, as an entry of `mounted`; undefined where none has. */
  focused() {
    return [...this.mounted.parts].find(([, row]) => row.el.contains(document.activeElement));
  }

  /** Move the focus by so many rows, or to the first in sight; returns whether there was one to go to. */
  move(by) {
    const focused = this.focused();
    const from = focused === undefined ? -1 : this.items.findIndex((item) => this.keyOf(item) === focused[0]);
    const inSight = Math.max(0, Math.ceil(-this.host.getBoundingClientRect().top / this.rowHeight()));
    const to = Math.min(focused === undefined ? inSight : Math.max(from + by, 0), this.items.length - 1);
    if (to < 0 || to === from) return false;
    this.goTo(to);
    return true;
  }

  /** Bring a row into sight and give it the focus. */
  goTo(to) {
    this.render(); // the list has its height only when it was drawn
    const height = this.rowHeight();
    const y = this.host.getBoundingClientRect().top + to * height;
    const margin = height * 1.5;
    if (y < margin) scrollBy(0, y - margin);
    else if (y + height > innerHeight - margin) scrollBy(0, y + height - innerHeight + margin);
    this.render();
    this.mounted.parts.get(this.keyOf(this.items[to]))?.focus();
  }
}
