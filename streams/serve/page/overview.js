// The overview: all sessions by pressure or by last activity, live.

import { get, now, query, sessionPath } from "./api.js";
import { Controls } from "./controls.js";
import { attr, h, say, shown, text } from "./dom.js";
import { Feed } from "./feed.js";
import { addressOf, fits, isFiltered, mayFit, readFilters, serverFilters } from "./filters.js";
import { exact, shortIds } from "./format.js";
import { mainChain } from "./judge.js";
import { patch } from "./patch.js";
import { COLUMNS, sessionRow } from "./row.js";
import { Rows } from "./rows.js";
import { emptyNote, skeleton, tellError } from "./notes.js";

const PAGE = 200;
/** The order follows the figures so often: more would have rows run away under the eye. */
const ORDER_MS = 1_500;
/** How often the list is compared with the server's, for sessions that came and went. */
const RECONCILE_MS = 20_000;
/** A long list is compared no more often than this, however many sessions rise into it. */
const LONG_LIST_MS = 5_000;
/** Where the feed is away the list is asked for instead. */
const POLL_MS = 3_000;
/** Changes that the feed does not tell whole are asked for, so many at a time. */
const ASKS_AT_ONCE = 4;

class Item {
  constructor(view) {
    this.id = view.session_id;
    this.asking = false;
    this.short = undefined;
    this.replace(view);
  }

  /** Whether to ask for the rest: of an id without an address only the list can tell. */
  get isWanted() {
    return this.incomplete && this.id.isWellFormed();
  }

  /** Take a view of the server, unless it is older than what the feed told. */
  replace(view) {
    if (this.view !== undefined && view.sequence < this.view.sequence) return;
    this.view = view;
    this.incomplete = false;
  }
}

export class Overview {
  /** `leftId`: the session whose page was left for this one, or null. */
  constructor(host, parameters, shell, leftId = null) {
    this.host = host;
    this.shell = shell;
    this.leftId = leftId;
    this.filters = readFilters(parameters);
    this.items = new Map();
    this.order = [];
    this.total = 0;
    this.cursor = null;
    this.generation = undefined;
    this.loading = false;
    this.dirty = new Set();
    this.wanted = new Set();
    this.asks = 0;
    this.stopped = new AbortController();
    this.timers = [];
    this.isLive = false;
    this.reconciledAt = 0;
    this.frame = 0;
  }

  start() {
    this.#build();
    this.rows = new Rows({
      host: this.body, make: sessionRow, keyOf: (item) => item.id, onNeed: (index) => this.#need(index),
    });
    this.#load();
    this.timers = [
      setInterval(() => this.#tick(), 1_000),
      setInterval(() => this.#reorder(), ORDER_MS),
      setInterval(() => this.#reconcile(), RECONCILE_MS),
      setInterval(() => {
        if (!this.isLive || this.order.length === 0) this.#reconcile();
      }, POLL_MS),
    ];
  }

  stop() {
    this.stopped.abort();
    this.feed?.stop();
    this.rows.stop();
    this.timers.forEach(clearInterval);
    cancelAnimationFrame(this.frame);
  }

  hurry() {
    this.feed?.hurry();
    this.#reconcile();
  }

  #build() {
    this.summary = text("");
    this.body = h("div", { role: "rowgroup", class: "rows" });
    this.table = h(
      "div",
      { role: "table", class: "sessions", "aria-label": "Sessions", hidden: true },
      h(
        "div",
        { role: "rowgroup" },
        h(
          "div",
          { role: "row", class: "row head", "aria-rowindex": "1" },
          ...COLUMNS.map((name) => h("div", { role: "columnheader" }, name)),
        ),
      ),
      this.body,
    );
    this.note = h("div", { class: "note-place" }, skeleton(6));
    this.controls = new Controls(this.filters, (change) => this.#choose(change));
    this.host.replaceChildren(
      h(
        "div",
        { class: "page-head" },
        h("h1", {}, "Sessions"),
        h("p", { class: "faint", id: "summary" }, this.summary),
      ),
      this.controls.el,
      this.table,
      this.note,
    );
    this.body.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10 }[event.key];
      if (by !== undefined && this.rows.move(by)) event.preventDefault();
    });
  }

  #choose(change) {
    Object.assign(this.filters, change);
    this.controls.mark(this.filters.show);
    history.replaceState(null, "", addressOf(this.filters));
    this.#load();
  }

  /** Read the list from its beginning. What was there stays in sight until the answer is. */
  async #load(isReset = false) {
    if (isReset) this.items.clear(); // a log begun anew counts from 1: what is known would seem newer
    this.reload?.abort();
    this.reload = new AbortController();
    const { signal } = this.reload;
    try {
      const answer = await this.#page(null, signal);
      if (signal.aborted || this.stopped.signal.aborted) return;
      this.order = [];
      this.generation = answer.generation;
      this.#add(answer);
      scrollTo({ top: Math.min(scrollY, this.host.offsetTop) });
      this.#show();
    } catch (error) {
      if (signal.aborted || this.stopped.signal.aborted) return;
      this.#fail(error);
    }
  }

  /** Fetch a part of the list. The feed goes on from the first that is read. */
  async #page(cursor, signal) {
    const answer = await get(`v1/sessions${query({ ...serverFilters(this.filters), limit: PAGE, cursor })}`, {
      signal: AbortSignal.any([this.stopped.signal, signal]),
    });
    this.feed ??= new Feed({
      lastId: answer.as_of?.feed ?? null,
      onEntries: (entries) => this.#take(entries),
      onReset: () => this.#load(true),
      onState: (state) => this.#liveState(state),
    });
    return answer;
  }

  #add(answer) {
    const there = new Set(this.order);
    for (const view of answer.sessions) {
      const item = this.#known(view);
      if (!there.has(item)) this.order.push(item);
    }
    this.cursor = answer.next;
    this.total = answer.total ?? this.order.length;
  }

  #known(view) {
    let item = this.items.get(view.session_id);
    if (item === undefined) {
      item = new Item(view);
      this.items.set(item.id, item);
      this.controls.offer(mainChain(view).model);
    } else {
      item.replace(view);
    }
    return item;
  }

  /** Fetch the next page where the eye comes near the end of what is there. */
  async #need(index) {
    if (this.loading || this.cursor === null || index < this.order.length - 40) return;
    this.loading = true;
    try {
      const answer = await this.#page(this.cursor, this.reload.signal);
      if (answer.generation !== this.generation) this.#load(); // one answer is never of two
      else {
        this.#add(answer);
        this.#show();
      }
    } catch (error) {
      if (error.status === 400 || error.status === 410) this.#load(); // the cursor is of a former list
    } finally {
      this.loading = false;
    }
  }

  /** Compare the beginning with the server's: sessions that came, went, or rose. */
  async #reconcile() {
    if (this.reconciling || document.hidden) return;
    this.reconciling = true;
    this.reconciledAt = performance.now();
    try {
      const { signal } = this.reload;
      const answer = await this.#page(null, signal);
      if (signal.aborted || this.stopped.signal.aborted) return;
      const { cursor } = this;
      const isWhole = answer.generation !== this.generation || this.order.length <= PAGE;
      if (isWhole && !this.rows.isHeld()) this.order = [];
      this.generation = answer.generation;
      this.#add(answer);
      if (!isWhole) this.cursor = cursor;
      if (!this.rows.isHeld()) this.#sort();
      this.#show();
    } catch (error) {
      if (!this.stopped.signal.aborted && this.order.length === 0 && error.name !== "AbortError") this.#fail(error);
    } finally {
      this.reconciling = false;
    }
  }

  #take(entries) {
    for (const entry of entries) {
      const item = this.items.get(entry.session_id);
      this.isBehind ||= this.#belongs(entry, item);
      if (item === undefined) continue;
      const outcome = patch(item.view, entry);
      if (outcome === "old") continue;
      if (outcome === "ask") item.incomplete = true;
      this.dirty.add(item.id);
    }
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.#paint());
  }

  /** Whether a session is not in the list, and may belong into the part that was fetched. */
  #belongs(entry, item) {
    if (item !== undefined && this.cursor === null && !isFiltered(this.filters)) return false; // all are in it
    if (!mayFit(entry, item?.view, this.filters) || this.order.includes(item)) return false;
    if (this.cursor === null || this.filters.sort === "recent") return true;
    const lowest = this.order.at(-1);
    return lowest === undefined || (entry.used_percent ?? -1) > (mainChain(lowest.view).used_percent ?? -1);
  }

  #paint() {
    this.frame = 0;
    this.rows.refresh(this.dirty);
    for (const id of this.dirty) {
      if (this.items.get(id)?.isWanted && this.rows.mounted.has(id)) this.wanted.add(id);
    }
    this.dirty.clear();
    this.#askWanted();
  }

  #askWanted() {
    for (const id of this.wanted) {
      if (this.asks >= ASKS_AT_ONCE) return;
      this.wanted.delete(id);
      this.#askOne(id);
    }
  }

  async #askOne(id) {
    this.asks += 1;
    try {
      const { session } = await get(sessionPath(id), { signal: this.stopped.signal });
      this.items.get(id)?.replace(session);
      this.rows.refresh(new Set([id]));
    } catch {
      // it stays incomplete: the next change or comparison asks again
    } finally {
      this.asks -= 1;
      if (!this.stopped.signal.aborted) this.#askWanted();
    }
  }

  /** Once a second: clocks go on, and rows that scrolled into sight are made whole. */
  #tick() {
    this.rows.refresh();
    for (const [id] of this.rows.mounted) if (this.items.get(id)?.isWanted) this.wanted.add(id);
    this.#askWanted();
    const rest = this.order.length < PAGE ? 0 : LONG_LIST_MS;
    if (this.isBehind && this.isLive && performance.now() - this.reconciledAt >= rest) {
      this.isBehind = false;
      this.#reconcile();
    }
  }

  /** Not while somebody points into the list or reads it by keyboard: it would run away. */
  #reorder() {
    if (this.rows.isHeld() || this.order.length === 0) return;
    this.#sort();
    this.rows.set(this.order, this.total);
  }

  #sort() {
    const score = this.filters.sort === "recent"
      ? (item) => item.view.last_ms ?? -1
      : (item) => mainChain(item.view).used_percent ?? -1;
    const nowMs = now();
    const kept = this.order.filter((item) => fits(item.view, this.filters, nowMs));
    this.total -= this.order.length - kept.length;
    // As the server ranks: ties by last activity, then by id.
    kept.sort((a, b) => score(b) - score(a) || (b.view.last_ms ?? -1) - (a.view.last_ms ?? -1) || (a.id < b.id ? -1 : 1));
    this.order = kept;
  }

  #show() {
    const shorts = shortIds(this.order.map((item) => item.id));
    for (const item of this.order) item.short = shorts.get(item.id);
    if (this.cursor === null && !isFiltered(this.filters)) {
      this.controls.offerOnly(new Set(this.order.map((item) => mainChain(item.view).model)));
    }
    this.rows.set(this.order, this.total);
    this.#tell();
    this.#goBackTo();
  }

  /** Whether figures are in sight: then they stay while the server is away. */
  get hasFigures() {
    return this.order.length > 0;
  }

  /** Once, coming from a session's page: the focus goes to the row that was left. */
  #goBackTo() {
    const { leftId } = this;
    this.leftId = null;
    if (leftId === null || document.activeElement !== this.shell.main) return;
    const index = this.order.findIndex((item) => item.id === leftId);
    if (index >= 0) this.rows.goTo(index);
  }

  #tell() {
    const isEmpty = this.order.length === 0;
    shown(this.table, !isEmpty);
    shown(this.note, isEmpty);
    attr(this.table, "aria-rowcount", String(this.total + 1));
    say(this.summary, isEmpty ? "" : `${exact(this.total)} ${isFiltered(this.filters) ? "match" : "in all"}`);
    if (!isEmpty) return;
    this.note.replaceChildren(emptyNote(isFiltered(this.filters), () => this.controls.clear()));
  }

  #fail(error) {
    if (this.order.length) return; // the banner tells; the figures in sight stay
    shown(this.table, false);
    shown(this.note, true);
    tellError(this.note, error, () => this.#load());
  }

  #liveState(state) {
    this.isLive = state === "live";
    this.shell.live(state);
  }
}
