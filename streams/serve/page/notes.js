// What stands where figures would: while they load, where there are none, where they cannot be had.

import { h, icon } from "./dom.js";

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

/** No session: none fits, or none was ever projected. */
export function emptyNote(isFiltered, clear) {
  if (isFiltered) {
    return note(
      "search", "No session fits",
      h("p", {}, "None of the sessions has all that is asked for."),
      h("button", { type: "button", class: "primary", on: { click: clear } }, "Show all sessions"),
    );
  }
  return note(
    "info", "No sessions yet",
    h("p", {}, "Sessions appear here as soon as their messages have been published and projected. Start the two workers, and publish what is there:"),
    h("pre", { tabindex: "0" }, "contextgauge derive &\ncontextgauge project &\ncontextgauge publish --follow ~/.claude/projects"),
    h("p", { class: "faint" }, "They run already? contextgauge doctor finds what is missing."),
  );
}

/** Figures cannot be had: why, and what to do. */
export function errorNote(error, again) {
  const [title, advice] = adviceFor(error);
  const why = error.detail || error.message;
  return note(
    "warning", title,
    why === `${title}.` || error.status === 404 ? null : h("p", {}, why), // said already, or how to use the API
    h("p", { class: "faint" }, advice),
    h("button", { type: "button", class: "primary", on: { click: again } }, "Try again"),
  );
}

/** Show an error in `place`, below what leads there. One that stands there already stays as it is. */
export function tellError(place, error, again, ...leading) {
  const told = `${error.status} ${error.message}`;
  if (place.querySelector(":scope > .note")?.dataset.told === told) return;
  const made = errorNote(error, again);
  made.dataset.told = told;
  made.setAttribute("role", "alert");
  place.replaceChildren(...leading, made);
}

/** No session has this id: those that begin so, where there are some, and the way to all of them. */
export function noSessionNote(links, more) {
  const all = h("a", { href: "#/" }, "Show all sessions");
  if (links.length === 0) {
    return note(
      "search", "There is no such session",
      h("p", {}, "It may have left the views after a long idleness, or its messages have not been projected yet: then it appears here by itself. Is the address whole?"),
      h("p", {}, all),
    );
  }
  return note(
    "search", "Several sessions begin so",
    h("p", {}, "The address has only the beginning of an id, and that of more than one session:"),
    h("ul", { class: "plain-list" }, ...links.map((link) => h("li", {}, link)), more ? h("li", { class: "faint" }, "and more") : null),
    h("p", {}, all),
  );
}

/** An address of this page that nothing stands at. */
export function noPageNote() {
  return note("search", "There is no such page", h("p", {}, "Nothing stands at this address."), h("p", {}, h("a", { href: "#/" }, "Show all sessions")));
}

function adviceFor(error) {
  switch (error.status) {
    case 0:
      return ["The server does not answer", "Is contextgauge serve running? This page tries again by itself."];
    case 401:
      return ["A token is needed", "Ask whoever runs this server for one, and enter it."];
    case 404:
      return ["There is no such session", "It may have left the views after a long idleness."];
    case 429:
      return ["Too many requests", "The server limits how often it may be asked. It goes on in a moment."];
    case 503:
      return ["The figures cannot be read now", "Is Redis running? contextgauge doctor tells what is wrong and how to mend it."];
    default:
      return ["That did not work", "contextgauge doctor tells what is wrong and how to mend it."];
  }
}
