// One session: how full it is, how it came to that, and each compaction from its start to its end.

import { decoded, get, now, query, sessionPath } from "./api.js";
import { Costs, sessionCostWords } from "./costs.js";
import { controlPart, readControl, withService } from "./control.js";
import { attr, factList, h, icon, Keyed, segments, setText, setIcon, shown, text, texts } from "./dom.js";
import { Feed } from "./feed.js";
import { exact, guess, moment, folderOf, percent, shortId, thrashWords, tokens, UNKNOWN } from "./format.js";
import { breakdownTip, gauge, outlook, untilMeaning } from "./gauge.js";
import { statusOf, timelineItem } from "./items.js";
import { lineagePart, Relatives } from "./lineage.js";
import { messagesPart } from "./messages.js";
import { noSessionNote, skeleton, showError } from "./notes.js";
import { rawRecords, Tail } from "./raw.js";
import { meanWords, sessionLink, stateWords, STATE_ICONS, untilWords } from "./row.js";
import { SizeChart } from "./size.js";
import {
  chainWords, compactionCount, doubtOf, dueWord, failureName, isStep, leadingChain, stateOf, untilOf,
  withThresholds,
} from "./status.js";
import { documentChanges, orderWords, pointOf, timelineOf, withFolds } from "./timeline.js";
import { refreshTip, tipped } from "./tip.js";
import { whatIfPart } from "./what_if.js";

/** Changes are read together: a busy session is asked for twice a second, no more. */
const REFRESH_MS = 500;
const POLL_MS = 3_000;
/** Elements of the timeline at first; more are shown on demand. */
const SHOWN_ITEMS = 100;

/** Of sessions that begin as the address does, so many are looked at, and so many named. */
const LOOKED_UP = 200;
const LISTED = 20;

/** What a screen reader is told of a compaction. */
const ENDS = { running: "A compaction is running.", done: "The compaction completed.", failed: "The compaction failed." };

const KINDS = [
  ["all", "All", (item) => !item.isRepeat],
  ["compactions", "Compactions", (item) => item.kind === "compaction"],
  ["warnings", "Warnings", (item) => item.kind === "context_warning"],
  ["other", "Other", (item) => item.kind !== "compaction" && item.kind !== "context_warning"],
];

export class SessionPage {
  /** `address`: the session's, or what someone entered in its place: an id, or the beginning of one. */
  constructor(host, address, parameters, shell) {
    this.host = host;
    this.id = decoded(address);
    this.address = encodeURIComponent(this.id);
    this.shell = shell;
    this.stopped = new AbortController();
    this.#forget();
    this.view = null;
    this.control = null;
    this.isLive = false;
    this.timers = [];
    this.limit = SHOWN_ITEMS;
    this.statuses = new Map();
    this.kind = KINDS.find(([name]) => name === parameters.get("show")) ?? KINDS[0];
    this.shell.title(shortId(this.id));
  }

  start() {
    this.host.replaceChildren(backLink(), skeleton(8));
    this.timers = [
      setInterval(() => this.#tick(), 1_000),
      setInterval(() => {
        if (!this.isLive) this.#soon();
        this.#control(); // no feed names what the control plane decides
      }, POLL_MS),
    ];
    this.#refresh();
  }

  stop() {
    this.stopped.abort();
    this.feed?.stop();
    this.timers.forEach(clearInterval);
    clearTimeout(this.soon);
    this.chart?.stop();
  }

  hurry() {
    this.feed?.hurry();
    this.#soon();
  }

  renewEstimates() {
    this.#soon();
  }

  #soon() {
    if (this.soon !== undefined || this.stopped.signal.aborted) return;
    this.soon = setTimeout(() => {
      this.soon = undefined;
      this.#refresh();
    }, this.view === null ? 0 : REFRESH_MS);
  }

  /** Read what is new. One reading at a time; what comes meanwhile leads to another one. */
  async #refresh() {
    if (this.refreshing) {
      this.isBehind = true;
      return;
    }
    this.refreshing = true;
    this.isBehind = false;
    try {
      const { signal } = this.stopped;
      const { session, generation, as_of: asOf } = withThresholds(await get(sessionPath(this.address), { signal }));
      this.#follow(asOf?.feed ?? null);
      if (this.generation !== undefined && generation !== this.generation) this.#forget();
      this.generation = generation;
      const { events, readings } = this.tails;
      await Promise.all([events.read(), readings.read()]);
      const changes = documentChanges(events.records);
      if (changes !== this.documentsAt) {
        // After the records, so that each compaction of which there is one has its document.
        this.documents = (await get(sessionPath(this.address, "/compactions"), { signal })).compactions;
        this.documentsAt = changes;
      }
      await Promise.all([this.costs.read(changes), this.relatives.read(session)]);
      const isFirst = this.view === null;
      this.view = session;
      this.id = session.session_id;
      this.hasLookedUp = false;
      this.#show();
      if (isFirst) this.#control();
    } catch (error) {
      if (!this.stopped.signal.aborted) this.#fail(error);
    } finally {
      this.refreshing = false;
      if (this.isBehind) this.#soon();
    }
  }

  async #control() {
    if (this.view === null || document.hidden || this.shell.reading !== null) return; // one of transcripts has no control plane
    const control = await readControl(this.address, this.stopped.signal);
    if (this.stopped.signal.aborted || control === null) return;
    this.control = control;
    this.#show();
  }

  /** Follow the feed from where the first answer was. */
  #follow(lastId) {
    this.feed ??= new Feed({
      session: decoded(this.address),
      lastId,
      onEntries: () => this.#soon(),
      onReset: () => this.#soon(),
      onState: (state) => {
        this.isLive = state === "live";
        this.shell.live(state);
      },
    });
  }

  /** Another generation has its records at other places: all is read again. */
  #forget() {
    const tail = (stream) => new Tail(sessionPath(this.address, `/${stream}`), this.stopped.signal);
    this.tails = { events: tail("events"), readings: tail("readings") };
    this.documents = [];
    this.documentsAt = null;
    this.costs ??= new Costs(this.address, this.stopped.signal);
    this.relatives ??= new Relatives(this.stopped.signal);
    this.costs.readAt = this.relatives.readAt = null;
  }

  #fail(error) {
    if (error.status === 400 || error.status === 410) this.#forget(); // the cursors' generation is gone
    if (this.view !== null) return; // the banner says so; the figures in sight stay
    if (error.status === 404) this.#lookUp();
    else this.#showError(error);
  }

  /** Whether figures are in sight: then they stay while the server is away. */
  get hasFigures() {
    return this.view !== null;
  }

  /** No session has this id. Lists show the beginnings of ids: open the one that begins so. */
  async #lookUp() {
    if (this.hasLookedUp) return;
    this.hasLookedUp = true;
    try {
      const { sessions, next } = await get(`v1/sessions${query({ q: this.id, limit: LOOKED_UP })}`, { signal: this.stopped.signal });
      const matches = sessions.filter((view) => view.session_id.startsWith(this.id));
      const whole = matches.find((view) => view.session_id === this.id);
      if (this.view !== null) return; // it came meanwhile
      const only = whole ?? (matches.length === 1 && next === null ? matches[0] : undefined);
      if (only !== undefined) {
        location.replace(sessionLink(only)); // Back does not lead here again
        return;
      }
      const links = matches.slice(0, LISTED).map((view) => {
        const folder = folderOf(view);
        return h("a", { href: sessionLink(view) }, folder, folder ? " " : "", h("span", { class: "mono" }, view.session_id));
      });
      this.host.replaceChildren(backLink(), noSessionNote(links, next !== null || matches.length > LISTED));
    } catch (error) {
      if (!this.stopped.signal.aborted) this.#showError(error);
    }
  }

  #showError(error) {
    this.hasLookedUp = false; // what stands here then is the error
    showError(this.host, error, () => this.#refresh(), backLink());
  }

  #build() {
    this.chart?.stop();
    this.t = texts("name", "title", "state", "stateMore", "outlook", "more", "sizeTitle", "order");
    this.sign = icon("dot");
    this.meter = gauge();
    this.about = factList();
    this.figures = factList();
    this.chart = new SizeChart();
    this.lineage = lineagePart((words) => this.shell.announce(words));
    this.service = controlPart();
    this.messages = messagesPart(this.address, this.stopped.signal);
    this.whatIf = whatIfPart(this.address, this.stopped.signal);
    this.list = h("ol", { class: "timeline" });
    this.parts = new Keyed(this.list, (item) => item.key, (item) => timelineItem(item, () => this.view, this.costs));
    this.more = h("button", { type: "button", class: "quiet", hidden: true, on: { click: () => {
      this.limit += 5 * SHOWN_ITEMS;
      this.#show();
    } } }, this.t.more);
    this.none = h("p", { class: "faint", hidden: true }, "Nothing of this kind yet.");
    const kinds = segments("Show in the timeline", KINDS, this.kind[0], (name) => this.#choose(name));
    this.stateLine = h("p", { class: "state big" }, this.sign, h("span", {}, this.t.state), h("span", { class: "faint" }, this.t.stateMore));
    const hero = h("div", { class: "hero-gauge", tabindex: "0", role: "group", "aria-label": "Context" }, this.meter.el);
    tipped(hero, () => breakdownTip(this.view, leadingChain(this.view)));
    this.hero = hero;
    this.title = h("p", { class: "session-title", hidden: true }, this.t.title);
    this.host.replaceChildren(
      backLink(),
      h("div", { class: "page-head session-head" }, h("div", {}, h("h1", {}, this.t.name), this.title, h("p", { class: "mono faint id" }, this.id)), this.#copyButton()),
      this.about.el,
      h("section", { class: "card hero", "aria-label": "Now" }, this.stateLine, hero, h("p", { class: "faint small" }, this.t.outlook), this.figures.el),
      this.service.el,
      h("section", { class: "card", "aria-labelledby": "size-title" }, h("h2", { id: "size-title" }, this.t.sizeTitle), this.chart.el),
      this.lineage.el,
      h("section", { class: "card", "aria-labelledby": "timeline-title" },
        h("div", { class: "card-head" }, h("h2", { id: "timeline-title" }, "Timeline ", h("span", { class: "faint small" }, this.t.order)), kinds.el), this.list, this.none, this.more),
      this.whatIf.el,
      this.messages.el,
      rawRecords(sessionPath(this.address, "/events"), (stream) => this.tails[stream].records),
    );
  }

  #choose(name) {
    this.kind = KINDS.find(([each]) => each === name);
    history.replaceState(null, "", `${sessionLink(this)}${query({ show: this.kind === KINDS[0] ? "" : name })}`);
    this.#show();
  }

  #copyButton() {
    const words = text("Copy link");
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(location.href);
        setText(words, "Copied");
        this.shell.announce("The link is in the clipboard.");
      } catch {
        setText(words, "Copy it from the address bar"); // without TLS there is no clipboard
      }
      setTimeout(() => setText(words, "Copy link"), 3_000);
    };
    return h("button", { type: "button", class: "quiet", on: { click: copy } }, icon("link"), words);
  }

  #show() {
    if (this.list === undefined || !this.list.isConnected) this.#build();
    const { view } = this;
    withService(view, this.control);
    this.service.set(this.control);
    this.messages.set(this.documents);
    this.whatIf.set(this.documentsAt);
    shown(this.messages.el, this.shell.reading === null); // transcripts are files: no text is kept of them
    const chain = leadingChain(view);
    const folder = folderOf(view);
    setText(this.t.name, folder || shortId(this.id));
    this.shell.title([folder, shortId(this.id)].filter(Boolean).join(" ")); // tabs of one folder differ
    setText(this.t.title, view.title ?? "");
    shown(this.title, view.title !== null);
    this.about.set(aboutOf(view));
    this.meter.bind(view, chain);
    attr(this.hero, "aria-label", `Context of ${chainWords(view, chain.chain)}`);
    setText(this.t.outlook, outlookWords(view, chain));
    this.figures.set([...figuresOf(view, chain), ["Cost", sessionCostWords(this.costs.latest)]]);
    refreshTip(this.hero);
    const all = timelineOf(this.tails.events.records, this.documents, view);
    const ofKind = all.filter(this.kind[2]);
    const items = this.kind === KINDS[0] ? withFolds(ofKind, isStep) : ofKind;
    this.lineage.set(view, all, this.relatives.latest);
    this.parts.set(items.slice(0, this.limit));
    shown(this.none, items.length === 0);
    setText(this.t.order, orderWords(all));
    shown(this.more, items.length > this.limit);
    setText(this.t.more, `Show ${exact(items.length - this.limit)} older`);
    this.chart.set(this.tails.readings.records.map(pointOf), all, view);
    setText(this.t.sizeTitle, this.chart.byTime ? "Size over time" : "Size by record");
    this.#announceEnds(items);
    this.#tick();
  }

  /** Tell a screen reader when a compaction begins or ends. */
  #announceEnds(items) {
    for (const item of items) {
      if (item.kind !== "compaction") continue;
      const status = statusOf(item, this.view, now());
      const former = this.statuses.get(item.key);
      this.statuses.set(item.key, status);
      if (this.wasShown && former !== status && status in ENDS) this.shell.announce(ENDS[status]);
    }
    this.wasShown = true;
  }

  #tick() {
    if (this.view === null || this.list === undefined) return;
    const nowMs = now();
    const state = stateOf(this.view, nowMs);
    attr(this.stateLine, "data-state", state);
    setIcon(this.sign, STATE_ICONS[state]);
    const [what, more] = stateWords(this.view, state, nowMs);
    setText(this.t.state, what);
    setText(this.t.stateMore, more);
    for (const part of this.parts.parts.values()) part.tick?.();
  }
}

function backLink() {
  return h("a", { href: "#/", class: "back" }, icon("back"), "Sessions");
}

function aboutOf(view) {
  const { identity, status: { last_active_ms: lastMs } } = view;
  const runtime = [identity.runtime, identity.runtime_version].filter(Boolean).join(" ");
  const pairs = [
    ["Model", leadingChain(view).model ?? identity.model ?? UNKNOWN],
    ["Runtime", runtime || UNKNOWN],
    ["Folder", identity.cwd],
    ["Agent", identity.publisher_agent_id],
    ["Task", identity.task_id],
    ["Forked from", identity.forked_from],
    ["First seen", moment(view.first_ms, now())],
    ["Last activity", lastMs === null ? UNKNOWN : moment(lastMs, now())],
  ];
  return pairs.filter(([, value]) => value !== null);
}

/** What will happen when the context is full, and where that is known from. */
function outlookWords(view, chain) {
  return [outlook(view, chain), untilMeaning(untilOf(view, chain))].filter(Boolean).join(" ");
}

/** Messages since the last compaction or reset; what a compaction keeps is not among them. */
function messagesWords({ messages, messages_total: all }) {
  // Copies of another session's messages are in the context, and not among its own.
  const [copies, rest] = messages > all ? [", copied ones included", "its own"] : ["", "in all"];
  return messages === all ? exact(all) : `${exact(messages)} since the last compaction or reset${copies} · ${exact(all)} ${rest}`;
}

function figuresOf(view, chain) {
  const [until, more] = untilWords(view, chain);
  const { manual, automatic, idle, unknown_trigger: unknownTrigger, failed, inherited, messages_per_compaction: each } = view.compactions;
  const kinds = [[automatic, "automatic"], [idle, "idle"], [manual, "manual"], [unknownTrigger, "unknown trigger"], [failed, failureName(view)], [inherited, "inherited"]];
  const many = kinds.filter(([number]) => number).map(([number, name]) => `${exact(number)} ${name}`).join(", ");
  const { thrash } = view.status;
  const pairs = [
    ["Until compaction", more ? `${until}${dueWord(untilOf(view, chain)) ? ", " : " · "}${more}` : until],
    ["Growth", meanWords(chain) || UNKNOWN],
    ["Peak", chain.peak_tokens === null ? UNKNOWN : `${tokens(chain.peak_tokens)}${chain.peak_percent === null ? "" : ` · ${guess(percent(chain.peak_percent), doubtOf(view, chain))}`}`],
    ["Messages", messagesWords(chain)],
    ["Compactions", many ? `${exact(compactionCount(view))} · ${many}` : exact(compactionCount(view))],
    ["Messages per compaction", each === null ? UNKNOWN : exact(each)],
  ];
  if (thrash !== null) pairs.push(["Thrash", thrashWords(thrash, now())]);
  return pairs;
}
