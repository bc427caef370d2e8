// The page's frame: the view for the address, and the notices above it.

import { Analytics } from "./analytics.js";
import { get, onServer, setToken, takeToken } from "./api.js";
import { attr, h, icon, plain, setText, setIcon, text } from "./dom.js";
import { duration, moment } from "./format.js";
import { FiguresPage, showHelp } from "./help.js";
import { noPageNote } from "./notes.js";
import { Overview } from "./overview.js";
import { ReadingBar, isReading } from "./reading.js";
import { SessionPage } from "./session.js";
import { close as closeTip, initTips } from "./tip.js";

/** How often the lag of the projection is read. */
const PROJECTION_MS = 5_000;
/** While transcripts are being read, their bar moves so often. */
const READING_MS = 500;
/** One lost answer is no news, and one without figures neither. */
const UNREACHED_AFTER = 2;
const UNREAD_AFTER = 2;

const LIVE_WORDS = { connecting: "connecting", live: "live", waiting: "reconnecting", old: "standing still", none: "" };

class Shell {
  #view = null;
  #notices = new Map();
  #unreached = 0;
  #unread = 0;
  #goodMs = null;
  #feed = "none";
  #bar = new ReadingBar(document.getElementById("live"));
  /** How much of the transcripts the server has read; null: unknown, or it reads none. */
  reading = null;
  /** What the estimates of all sessions rest on, by the name that the server gives it; null: unknown. */
  estimates = null;

  constructor() {
    this.main = document.getElementById("main");
    this.liveSign = document.getElementById("live");
    this.liveText = document.getElementById("live-text");
    this.announcer = document.getElementById("announce");
  }

  start() {
    takeToken();
    initTips();
    this.#theme();
    document.getElementById("help").addEventListener("click", showHelp);
    onServer({
      unauthorized: (refused) => this.#askToken(refused),
      reached: () => this.#reached(),
      unreached: () => this.#lost(),
      read: () => this.#read(),
      unread: (problem) => this.#unreadable(problem),
    });
    document.getElementById("skip").addEventListener("click", (event) => {
      event.preventDefault();
      this.main.focus();
    });
    addEventListener("hashchange", () => {
      takeToken();
      this.#route();
    });
    addEventListener("online", () => this.#view?.hurry());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#view?.hurry();
    });
    addEventListener("keydown", (event) => this.#shortcut(event));
    setInterval(() => this.#projection(), PROJECTION_MS);
    this.#projection();
    this.#route();
  }

  /** Show the feed's state; "none": this view has no feed. */
  live(state) {
    this.#feed = state;
    this.#showLive();
  }

  /** A feed that is open is live only while the figures that it changes can be read. */
  #showLive() {
    const state = this.#feed === "live" && this.#unread >= UNREAD_AFTER ? "old" : this.#feed;
    attr(this.liveSign, "data-state", state);
    if (this.liveText.firstChild.data !== LIVE_WORDS[state]) this.liveText.firstChild.data = LIVE_WORDS[state];
  }

  /** Say something to a screen reader. */
  announce(words) {
    this.announcer.textContent = plain(words);
  }

  title(words) {
    document.title = words ? `${plain(words)} · contextgauge` : "contextgauge";
  }

  #route() {
    const [path, search = ""] = location.hash.replace(/^#/, "").split("?");
    const parameters = new URLSearchParams(search);
    const session = /^\/session\/(.+)$/.exec(path);
    const leftId = this.#view instanceof SessionPage ? this.#view.id : null;
    this.#view?.stop();
    for (const name of ["unreached", "unread"]) this.#notice(name, null); // shown again where they still hold
    closeTip();
    this.live("none");
    let page = "overview";
    if (session !== null) {
      page = "session";
      this.#view = new SessionPage(this.main, session[1], parameters, this);
    } else if (path === "/analytics") {
      page = "analytics";
      this.title("Analytics");
      this.#view = new Analytics(this.main, parameters, this);
    } else if (path === "/figures") {
      page = "figures";
      this.title("Where the figures come from");
      this.#view = new FiguresPage(this.main);
    } else if (path === "" || path === "/") {
      this.title("");
      this.#view = new Overview(this.main, parameters, this, leftId);
    } else {
      page = "none";
      this.title("Page not found");
      this.#view = null;
      this.main.replaceChildren(noPageNote());
    }
    for (const link of document.querySelectorAll("nav a[data-page]")) {
      attr(link, "aria-current", link.dataset.page === page ? "page" : null);
    }
    attr(document.body, "data-page", page);
    if (this.hasRouted) {
      scrollTo(0, 0);
      this.main.focus({ preventScroll: true });
    }
    this.#view?.start();
    this.hasRouted = true;
  }

  #shortcut(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null) return;
    const field = /^(?:INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "") ? document.activeElement : null;
    const search = this.main.querySelector("input[type=search]");
    if (field !== null) {
      if (field === search && event.key === "ArrowDown") this.#view?.key?.(event); // down, from the search into the list
    } else if (event.key === "?") {
      event.preventDefault();
      showHelp();
    } else if (event.key === "/" && search !== null) {
      event.preventDefault();
      search.focus();
    } else {
      this.#view?.key?.(event);
    }
  }

  #theme() {
    const button = document.getElementById("theme");
    const sign = icon(window.contextgaugeTheme.current());
    button.append(sign);
    const show = () => {
      const theme = window.contextgaugeTheme.current();
      setIcon(sign, theme);
      const words = `Theme: ${theme === "system" ? "as the system" : theme}`;
      attr(button, "aria-label", words);
      attr(button, "title", words);
    };
    show();
    button.addEventListener("click", () => {
      window.contextgaugeTheme.next();
      show();
    });
  }

  #reached() {
    this.#unreached = 0;
    this.#notice("unreached", null);
  }

  #lost() {
    this.#unreached += 1;
    if (this.#unreached < UNREACHED_AFTER) return;
    this.#notice("unread", null);
    if (!this.#view?.hasFigures) return; // the view itself shows it
    this.#notice("unreached", "bad", `The server does not answer. Retrying.${this.#asOf()}`);
  }

  #read() {
    const wasAway = this.#unread >= UNREAD_AFTER;
    this.#unread = 0;
    this.#goodMs = Date.now();
    this.#notice("unread", null);
    if (!wasAway) return;
    this.#showLive();
    this.#view?.hurry(); // what changed meanwhile is unknown
  }

  /** Show that figures cannot be read; where none are in sight, the view itself does. */
  #unreadable(problem) {
    this.#unread += 1;
    if (this.#unread < UNREAD_AFTER) return;
    this.#showLive();
    if (!this.#view?.hasFigures) return;
    this.#notice("behind", null); // as of the last answer, which this one is newer than
    const why = problem.status === 429 ? "The server is asked too often." : `The figures cannot be read: ${sentence(problem.message)}`;
    this.#notice("unread", "bad", `${why} Retrying.${this.#asOf()}`);
  }

  #asOf() {
    return this.#goodMs === null ? "" : ` What you see is as of ${moment(this.#goodMs, Date.now())}.`;
  }

  async #projection() {
    if (document.hidden) return;
    let answer;
    try {
      answer = await get("v1/projection", { cache: "no-store" }); // its age is not in its tag
    } catch {
      return; // noticed by api.js; a server of another version may have no such route
    }
    const { reading } = this;
    this.reading = answer.reading ?? null;
    this.#bar.show(this.reading);
    if (this.estimates !== answer.estimates) {
      this.estimates = answer.estimates;
      this.#view?.renewEstimates?.(this.estimates);
    }
    if (isReading(this.reading)) setTimeout(() => this.#projection(), READING_MS);
    if ((reading === null) !== (this.reading === null) || isReading(reading) !== isReading(this.reading)) this.#view?.hurry();
    const behind = behindOf(answer);
    if (behind === null) this.#notice("behind", null);
    else {
      this.#notice("behind", "warn", `${behind} The figures below may be old. Check that contextgauge project runs; contextgauge doctor finds the cause.`);
    }
  }

  /** Show, change or take away a line above the page. */
  #notice(name, kind, words = "") {
    const there = this.#notices.get(name);
    if (kind === null) {
      there?.el.remove();
      this.#notices.delete(name);
      return;
    }
    if (there !== undefined) {
      setText(there.words, words);
      return;
    }
    const node = text(words);
    const el = h("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" }, icon("warning"), h("p", {}, node));
    this.#notices.set(name, { el, words: node });
    document.getElementById("notices").append(el);
  }

  /** Ask for a token. `refused`: the answer to the one that was sent; null where none was. */
  #askToken(refused) {
    if (document.querySelector("dialog.token") !== null) return;
    const input = h("input", {
      type: "password", name: "token", required: true, autocomplete: "off", "aria-label": "Token",
      "aria-invalid": refused === null ? null : "true", "aria-describedby": refused === null ? null : "token-refused",
    });
    const why = refused === null ? null
      : h("p", { class: "bad", id: "token-refused", role: "alert" }, sentence(refused.detail || refused.title));
    const dialog = h(
      "dialog",
      { class: "token", "aria-labelledby": "token-title" },
      h(
        "form",
        { method: "dialog", on: { submit: (event) => {
          event.preventDefault();
          setToken(input.value.trim());
          dialog.close();
        } } },
        h("h2", { id: "token-title" }, "A token is needed"),
        h("p", {}, "This server shows its figures only to those who have a token. It stays in this tab, and is forgotten when that is closed."),
        input,
        why,
        h("button", { type: "submit", class: "primary" }, "Continue"),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      this.#route();
    });
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    document.body.append(dialog);
    dialog.showModal();
  }
}

function sentence(words) {
  return /[.!?]$/.test(words) ? words : `${words}.`;
}

/** Why the figures are old, in words; null where they are not. */
function behindOf({ generation, as_of: asOf }) {
  if (generation === null || !asOf?.stale) return null; // without a generation there are no figures
  if (asOf.lag_ms) return `The figures are ${duration(asOf.lag_ms)} behind.`;
  if (asOf.silent_ms === null) return "No project worker has reported its position.";
  return `The project worker has been silent for ${duration(asOf.silent_ms)}.`;
}

new Shell().start();
