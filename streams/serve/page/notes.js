// What stands in place of figures: while they load, where there are none, where reading fails.

import { h, icon } from "./dom.js";
import { isReading } from "./reading.js";

/** Grey lines in the shape of what will come. */
export function skeleton(lines) {
  return h(
    "div",
    { class: "skeleton", role: "status" },
    h("span", { class: "sr" }, "Loading"),
    ...Array.from({ length: lines }, () => h("i", { "aria-hidden": "true" })),
  );
}

export function note(sign, title, ...body) {
  return h("section", { class: "note" }, icon(sign), h("h2", {}, title), ...body);
}

/** No session: none matches, or there never was one. `reading`: of a server that reads transcripts. */
export function emptyNote(isFiltered, clear, reading) {
  if (isFiltered) {
    return note(
      "search", "No matching sessions",
      h("p", {}, "No session matches all of the filters."),
      h("button", { type: "button", class: "primary", on: { click: clear } }, "Show all sessions"),
    );
  }
  if (isReading(reading)) return note("info", "Reading transcripts", h("p", {}, "The first sessions appear in a moment."));
  if (reading !== null) {
    return note("info", "No sessions yet", h("p", {}, "A session appears here as soon as its runtime writes a transcript."));
  }
  return note(
    "info", "No sessions yet",
    h("p", {}, "Sessions appear here as soon as their messages have been published and projected. Start the two workers, and publish what is there:"),
    h("pre", { tabindex: "0" }, "contextgauge derive &\ncontextgauge project &\ncontextgauge publish --follow ~/.claude/projects"),
    h("p", { class: "faint" }, "Already running? contextgauge doctor finds what is missing."),
  );
}

/** Of `serve` and `view` alike. */
const NO_SESSION = "No session with this id. It may have been removed, or its messages have not arrived yet.";

/** What a failed request means, and what to do, by its status. */
const ADVICE = {
  0: ["The server does not answer", "Is contextgauge serve, or contextgauge view, still running? This page retries by itself."],
  401: ["A token is needed", "Ask the operator of this server for one, and enter it."],
  404: ["Session not found", NO_SESSION],
  429: ["Too many requests", "The server limits the rate of requests. The page continues in a moment."],
  503: ["The figures cannot be read now", "Of contextgauge serve: is Redis running? contextgauge doctor finds the cause and the remedy. Of contextgauge view: its terminal shows why."],
};
const ELSE = ["The request failed", "Of contextgauge serve: contextgauge doctor finds the cause and the remedy. Of contextgauge view: its terminal shows why."];
/** An error without a status is none of the server's. */
const OF_PAGE = ["This page failed", "This is an error in contextgauge itself: please report it with the line above. Reloading the page may help."];

/** Show in `place`, below what leads there, why figures cannot be read. The same error stays as it is. */
export function showError(place, error, again, ...leading) {
  const key = `${error.status} ${error.message}`;
  if (place.querySelector(":scope > .note")?.dataset.error === key) return;
  const [title, advice] = error.status === undefined ? OF_PAGE : ADVICE[error.status] ?? ELSE;
  const why = error.detail || error.message;
  const made = note(
    "warning", title,
    why === `${title}.` || error.status === 404 ? null : h("p", {}, why), // shown already, or advice for programs
    h("p", { class: "faint" }, advice),
    h("button", { type: "button", class: "primary", on: { click: again } }, "Retry"),
  );
  made.dataset.error = key;
  made.setAttribute("role", "alert");
  place.replaceChildren(...leading, made);
}

/** No session has this id: links to those that begin with it, and to the list. */
export function noSessionNote(links, more) {
  const all = h("a", { href: "#/" }, "Show all sessions");
  if (links.length === 0) {
    return note(
      "search", "Session not found",
      h("p", {}, NO_SESSION, " It appears here by itself once they do."),
      h("p", {}, all),
    );
  }
  return note(
    "search", "Several sessions match",
    h("p", {}, "The address holds only the beginning of an id, which several sessions share:"),
    h("ul", { class: "plain-list" }, ...links.map((link) => h("li", {}, link)), more ? h("li", { class: "faint" }, "and more") : null),
    h("p", {}, all),
  );
}

/** An address of this page that does not exist. */
export function noPageNote() {
  return note("search", "Page not found", h("p", {}, "There is no page at this address."), h("p", {}, h("a", { href: "#/" }, "Show all sessions")));
}
