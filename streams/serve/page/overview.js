// The overview: all sessions, the live ones first, by pressure or another column. The feed says which sessions
// changed; their documents are then read and put in place of the former ones.

import { get, now, query } from "./api.js";
import { Controls } from "./controls.js";
import { attr, h, setText, shown, text } from "./dom.js";
import { Feed } from "./feed.js";
import { addressOf, fits, isFiltered, mayFit, readFilters, serverFilters } from "./filters.js";
import { duration, exact } from "./format.js";
import { DEFAULT_SORT, directionOf, isLive, sorted } from "./order.js";
import { COLUMNS, nameRows, sessionLink, sessionRow } from "./row.js";
import { Rows } from "./rows.js";
import { currentThresholds, leadingChain, withThresholds } from "./status.js";
import { emptyNote, skeleton, showError } from "./notes.js";

const PAGE = 200;
/** The order follows the figures so often: more would have rows run away under the eye. */
const ORDER_MS = 1_500;
/** How often the list is compared with the server's, for sessions that came and went. */
const RECONCILE_MS = 20_000;
/** A long list is compared no more often than this, however many sessions rise into it. */
const LONG_LIST_MS = 5_000;
/** Where the feed is away the list is asked for instead. */
const POLL_MS = 3_000;
/** Sessions that changed are read together, so many at once and no more often than this. */
const READ_AT_ONCE = 100;
const READ_MS = 250;
/** Characters of their ids in one address. */
const ADDRESS = 6_000;

export class Overview {
  /** `leftId`: the session whose page was left for this one, or null. */
  constructor(host, parameters, shell, leftId = null) {
    this.host = host;
    this.shell = shell;
    this.leftId = leftId;
    this.filters = readFilters(parameters);
    this.items = new Map();
    this.order = [];
    this.listed = new Set();
    this.total = 0;
    this.live = 0;
    this.cursor = null;
    this.generation = undefined;
    this.loading = false;
    this.changed = new Set();
    this.reading = false;
    this.stopped = new AbortController();
    this.timers = [];
    this.isLive = false;
    this.reconciledAt = 0;
    this.estimates = shell.estimates;
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
  }

  hurry() {
    this.feed?.hurry();
    this.#reconcile();
    this.#readChanged();
  }

  /** Estimates rest on something else now: rows in sight are read again, and others once they are. */
  renewEstimates(name) {
    const isFirst = this.estimates === null;
    this.estimates = name;
    for (const item of this.items.values()) if (isFirst) item.estimates = name;
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
          ...COLUMNS.map(([name, sort]) => this.#head(name, sort)),
        ),
      ),
      this.body,
    );
    this.note = h("div", { class: "note-place" }, skeleton(6));
    this.controls = new Controls(this.filters, (change) => this.#choose(change), (change) => this.#openFirst(change));
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
  }

  /** A column's head: sorts by it, and from it back to the usual order. */
  #head(name, sort) {
    const head = h("div", { role: "columnheader" }, h("button", { type: "button", class: "sorter", on: { click: () => {
      this.#choose({ sort: this.filters.sort === sort ? DEFAULT_SORT : sort });
    } } }, name));
    this.heads ??= new Map();
    this.heads.set(sort, head);
    this.#markHead(sort, head);
    return head;
  }

  #markHead(sort, head) {
    attr(head, "aria-sort", sort === this.filters.sort ? directionOf(sort) : null);
  }

  /** A key that no field takes: moves between sessions, from anywhere. */
  key(event) {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (by === undefined || (Math.abs(by) > 1 && this.rows.focused() === undefined)) return;
    if (this.rows.move(by)) event.preventDefault();
  }

  async #choose(change) {
    Object.assign(this.filters, change);
    history.replaceState(null, "", addressOf(this.filters));
    this.controls.markSort(this.filters.sort);
    for (const [sort, head] of this.heads) this.#markHead(sort, head);
    return this.#load();
  }

  /** Open the first session that a search finds. */
  async #openFirst(search) {
    if (search.q === "" || !await this.#choose(search)) return;
    const [first] = this.order;
    if (first !== undefined) location.hash = sessionLink(first.view);
  }

  /** Read the list from its beginning; returns whether it was. What was there stays in sight until the answer is. */
  async #load(isReset = false) {
    if (isReset) this.items.clear(); // a recreated log counts from 1: what is known would seem newer
    this.reload?.abort();
    this.reload = new AbortController();
    const { signal } = this.reload;
    try {
      const answer = await this.#page(null, signal);
      if (signal.aborted || this.stopped.signal.aborted) return false;
      this.order = [];
      this.generation = answer.generation;
      this.#add(answer);
      scrollTo({ top: Math.min(scrollY, this.host.offsetTop) });
      this.#show();
      return true;
    } catch (error) {
      if (!signal.aborted && !this.stopped.signal.aborted) this.#fail(error);
      return false;
    }
  }

  /** Fetch a part of the list. The feed goes on from the first that is read. */
  async #page(cursor, signal) {
    const { estimates } = this;
    const answer = withThresholds(await get(`v1/sessions${query({ ...serverFilters(this.filters), limit: PAGE, cursor })}`, {
      signal: AbortSignal.any([this.stopped.signal, signal]),
    }));
    this.feed ??= new Feed({
      lastId: answer.as_of?.feed ?? null,
      onEntries: (entries) => this.#take(entries),
      onReset: () => this.#load(true),
      onState: (state) => this.#liveState(state),
    });
    return { ...answer, estimates };
  }

  #add(answer) {
    const there = new Set(this.order);
    for (const view of answer.sessions) {
      const item = this.#known(view, answer.estimates);
      if (!there.has(item)) this.order.push(item);
    }
    this.cursor = answer.next;
    this.total = answer.total ?? this.order.length;
    this.live = answer.live ?? this.total;
  }

  /** The item of a session: {id, view, estimates, short, folder}. A document takes its place unless a later one is there. */
  #known(view, estimates) {
    const id = view.session_id;
    if (!this.items.has(id)) {
      this.items.set(id, { id, view, short: undefined, folder: undefined });
      this.controls.offer(leadingChain(view).model, view.identity.runtime);
      if (view.title !== null) this.controls.searchTitles();
    }
    const item = this.items.get(id);
    if (view.sequence >= item.view.sequence) Object.assign(item, { view, estimates });
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
      if (!this.listed.has(item)) this.isBehind ||= this.#belongs(entry, item);
      else if (entry.sequence > item.view.sequence) this.changed.add(item.id);
    }
    this.#readChanged();
  }

  /** Whether a session that is not in the list may belong into the part that was fetched. */
  #belongs(entry, item) {
    if (!mayFit(entry, item?.view, this.filters)) return false;
    if (this.cursor === null || this.filters.sort !== "pressure") return true;
    const lowest = this.order.at(-1);
    return lowest === undefined || !isLive(lowest.view, now()) || (entry.used_percent ?? -1) > (leadingChain(lowest.view).used_percent ?? -1);
  }

  /** Read the sessions that changed, those in sight first. */
  async #readChanged() {
    if (this.reading || document.hidden) return;
    this.reading = true;
    while (this.changed.size && !this.stopped.signal.aborted && !document.hidden) {
      const ids = this.#nextToRead();
      if (ids.length === 0) break;
      let pauseMs = READ_MS;
      const { estimates } = this;
      try {
        const { sessions } = await get(`v1/sessions?${ids.map((id) => `id=${this.items.get(id).view.address}`).join("&")}`, { signal: this.stopped.signal });
        for (const view of sessions) if (this.items.has(view.session_id)) this.#known(view, estimates); // not one from before a reset
        this.rows.refresh(new Set(ids));
      } catch {
        for (const id of ids) this.changed.add(id);
        pauseMs = POLL_MS;
      }
      await new Promise((resolve) => { setTimeout(resolve, pauseMs); });
    }
    this.reading = false;
  }

  #nextToRead() {
    for (const id of this.changed) if (!this.items.has(id)) this.changed.delete(id); // of before a reset
    const ids = [...this.changed].sort((a, b) => this.rows.mounted.parts.has(b) - this.rows.mounted.parts.has(a));
    let room = ADDRESS;
    const some = ids.slice(0, READ_AT_ONCE).filter((id, index) => {
      room -= this.items.get(id).view.address.length;
      return room > 0 || index === 0;
    });
    for (const id of some) this.changed.delete(id);
    return some;
  }

  /** Once a second: clocks go on, verdicts change, and sessions come into the list. */
  #tick() {
    this.rows.refresh();
    for (const { item } of this.rows.mounted.parts.values()) if (item.estimates !== this.estimates) this.changed.add(item.id);
    this.#readChanged();
    const rest = this.order.length < PAGE ? 0 : LONG_LIST_MS;
    if (this.isBehind && this.isLive && performance.now() - this.reconciledAt >= rest) {
      this.isBehind = false;
      this.#reconcile();
    }
  }

  /** Not while the user points at the list or moves through it by keyboard: it would run away. */
  #reorder() {
    if (this.rows.isHeld() || this.order.length === 0) return;
    this.#sort();
    this.rows.set(this.order, this.total);
  }

  #sort() {
    const nowMs = now();
    const order = this.order.filter((item) => fits(item.view, this.filters, nowMs));
    this.total -= this.order.length - order.length;
    this.order = sorted(order, this.filters.sort, nowMs);
    this.listed = new Set(order);
    this.#divide();
  }

  /** Mark where live sessions end, and count them where all are here. */
  #divide() {
    const nowMs = now();
    const end = this.order.findIndex((item) => !isLive(item.view, nowMs));
    const isUntimed = ({ view }) => view.status.last_active_ms === null;
    const past = end < 0 ? [] : this.order.slice(end);
    const silent = past.every(isUntimed) ? null : `silent for ${duration(currentThresholds().stale_after_ms)} or more`;
    const words = [silent, past.some(isUntimed) ? "time unknown" : null].filter(Boolean).join(", or ");
    this.order.forEach((item, index) => { item.divides = index === end && index > 0 ? words : null; });
    if (this.cursor === null) this.live = end < 0 ? this.order.length : end;
  }

  #show() {
    this.listed = new Set(this.order);
    this.#divide();
    nameRows(this.order);
    if (this.cursor === null && !isFiltered(this.filters)) {
      this.controls.offerOnly(new Set(this.order.map((item) => leadingChain(item.view).model)));
    }
    this.rows.set(this.order, this.total);
    this.#summarize();
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

  #summarize() {
    const isEmpty = this.order.length === 0;
    shown(this.table, !isEmpty);
    shown(this.note, isEmpty);
    attr(this.table, "aria-rowcount", String(this.total + 1));
    setText(this.summary, isEmpty ? "" : `${exact(this.total)} ${isFiltered(this.filters) ? "match" : "in all"} · ${exact(this.live)} live`);
    if (!isEmpty) return;
    this.note.replaceChildren(emptyNote(isFiltered(this.filters), () => this.controls.clear(), this.shell.reading));
  }

  #fail(error) {
    if (this.order.length) return; // the banner says so; the figures in sight stay
    shown(this.table, false);
    shown(this.note, true);
    showError(this.note, error, () => this.#load());
  }

  #liveState(state) {
    this.isLive = state === "live";
    this.shell.live(state);
  }
}
