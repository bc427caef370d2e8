// The few things done to the document: elements are made once, and only what changed is written.

const SVG = "http://www.w3.org/2000/svg";

const REORDERING = /[\u202a-\u202e\u2066-\u2069]/g;

/** Attributes that are read to people. */
const SPOKEN = new Set(["title", "aria-label", "placeholder"]);

/**
 * A text of a session as it may be shown, anything else as it is: characters that make what
 * follows run the other way are written as `\u202e`, so that no name can look like another.
 */
export function plain(value) {
  if (typeof value !== "string") return value;
  return value.replace(REORDERING, (found) => `\\u${found.charCodeAt(0).toString(16)}`);
}

/**
 * Make an element. `props`: attributes; `class`; `on` with listeners by event name; true and
 * false for attributes without a value. Children: nodes, strings, null (left out).
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else {
      attr(element, name, value);
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(plain(child));
  }
  return element;
}

/** Set an attribute if it differs; null, undefined and false take it away. */
export function attr(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const written = value === true ? "" : String(value);
  const text = SPOKEN.has(name) ? plain(written) : written;
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** A text node: `setText` changes it, and no element is ever replaced. */
export function text(value = "") {
  return document.createTextNode(plain(value));
}

/** Empty text nodes by these names. */
export function texts(...names) {
  return Object.fromEntries(names.map((name) => [name, text()]));
}

export function setText(node, value) {
  const written = plain(value);
  if (node.data !== written) node.data = written;
}

/** Set a custom property if it differs. Through the object model: the policy forbids style=. */
export function css(element, name, value) {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}

/** Show or hide. */
export function shown(element, is) {
  if (element.hidden === is) element.hidden = !is;
}

const PATHS = {
  warning: "M12 4 2.8 19.5h18.4L12 4Zm0 6v4.5m0 2.6v.1",
  check: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Zm-4-9 3 3 5.5-6",
  cross: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Zm-3.2-12.2 6.4 6.4m0-6.4-6.4 6.4",
  spinner: "M12 3a9 9 0 1 0 9 9",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Zm0-14v5l3.5 2",
  unknown: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Zm-2.5-11.3a2.6 2.6 0 1 1 3.6 2.4c-.8.4-1.1.9-1.1 1.9m0 2.8v.1",
  dot: "M12 17.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11Z",
  estimate: "M4 10c2.5-3 5-3 8 0s5.5 3 8 0M4 16c2.5-3 5-3 8 0s5.5 3 8 0",
  system: "M3 5h18v11H3zM8 20h8m-4-4v4",
  light: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8Zm0-14v2m0 16v2M2 12h2m16 0h2M4.9 4.9l1.4 1.4m11.4 11.4 1.4 1.4m0-14.2-1.4 1.4M6.3 17.7l-1.4 1.4",
  dark: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z",
  link: "M10 14a4.5 4.5 0 0 0 6.4 0l3-3A4.5 4.5 0 0 0 13 4.6l-1.2 1.2M14 10a4.5 4.5 0 0 0-6.4 0l-3 3a4.5 4.5 0 0 0 6.4 6.4l1.2-1.2",
  back: "M15 6l-6 6 6 6",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14Zm5-2 5 5",
  reset: "M4 4v6h6M4.6 10A8 8 0 1 1 4 14",
  edit: "M4 7h16M9 7V4h6v3m-8 0 1 13h8l1-13",
  info: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Zm0-10v5.5m0-8.6v.1",
};

/** A drawn sign. Screen readers skip it, so words must stand next to it. */
export function icon(name) {
  const sign = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", class: "icon" }, svg("path", {}));
  setIcon(sign, name);
  return sign;
}

/** Make a drawn sign another one, in place. */
export function setIcon(sign, name) {
  if (sign.dataset.name === name) return;
  sign.dataset.name = name;
  sign.firstChild.setAttribute("d", PATHS[name]);
}

export function svg(tag, props, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Buttons of which one is pressed: {el, mark(value)}. `options`: the value and label of each. */
export function segments(label, options, selected, onChoose) {
  const buttons = options.map(([value, words]) => h("button", { type: "button", on: { click: () => {
    mark(value);
    onChoose(value);
  } } }, words));
  const mark = (value) => options.forEach(([each], index) => attr(buttons[index], "aria-pressed", String(each === value)));
  mark(selected);
  return { el: h("div", { class: "segments", role: "group", "aria-label": label }, ...buttons), mark };
}

/**
 * Keep a list of elements equal to a list of items: each item's element is made once by
 * `make(item)` → {el, update(item)}, updated in place, and only moved where the order changed.
 * `leave(part)` takes away the element of an item that is gone.
 */
export class Keyed {
  constructor(host, keyOf, make, leave = (part) => part.el.remove()) {
    this.host = host;
    this.keyOf = keyOf;
    this.make = make;
    this.leave = leave;
    this.parts = new Map();
  }

  set(items) {
    const keys = new Set(items.map(this.keyOf));
    for (const [key, part] of this.parts) {
      if (keys.has(key)) continue;
      this.parts.delete(key);
      this.leave(part);
    }
    let at = this.host.firstElementChild;
    for (const item of items) {
      const key = this.keyOf(item);
      if (!this.parts.has(key)) this.parts.set(key, this.make(item));
      const part = this.parts.get(key);
      part.update(item);
      if (part.el === at) at = at.nextElementSibling;
      else this.host.insertBefore(part.el, at);
    }
  }
}

/** A table in a box that scrolls where it has no room, and then says so. `kind`: a class of the box. */
export function scrolling(label, table, kind = "") {
  const words = text();
  const hint = h("p", { class: "faint small", hidden: true }, words);
  const box = h("div", { class: `table-scroll ${kind}`, tabindex: "0", role: "region", "aria-label": label }, table);
  const look = () => {
    const ways = [box.scrollWidth > box.clientWidth + 1 && "sideways", box.scrollHeight > box.clientHeight + 1 && "down"].filter(Boolean);
    shown(hint, ways.length > 0);
    setText(words, `This table scrolls ${ways.join(" and ")}.`);
  };
  const sizes = new ResizeObserver(look);
  sizes.observe(box);
  sizes.observe(table);
  return h("div", {}, hint, box);
}

/** A list of named facts whose elements stay: {el, set(pairs)}. */
export function factList() {
  const el = h("dl", { class: "facts" });
  const facts = new Keyed(el, ([name]) => name, ([name]) => {
    const value = text();
    return { el: h("div", {}, h("dt", {}, name), h("dd", {}, value)), update: (pair) => setText(value, pair[1]) };
  });
  const set = (pairs) => {
    shown(el, pairs.length > 0);
    facts.set(pairs);
  };
  return { el, set };
}
