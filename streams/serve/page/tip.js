// One tooltip for the page: at the pointer's and the keyboard's target, gone with Escape.

import { attr } from "./dom.js";

const DELAY_MS = 120;
const GAP = 8;

let tip = null;
let target = null;
let timer = 0;

/** Give an element a tooltip. `fill()` returns nodes, or null for none at this time. */
export function tipped(element, fill, { trigger = element } = {}) {
  element.addEventListener("pointerenter", (event) => {
    if (event.pointerType === "mouse") later(element, fill, trigger);
  });
  element.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") leave();
  });
  trigger.addEventListener("focus", () => {
    if (trigger.matches(":focus-visible")) open(element, fill, trigger);
  });
  trigger.addEventListener("blur", close);
}

/** Write the open tooltip of an element again: its content has changed. */
export function refreshTip(element) {
  if (target?.element === element) open(element, target.fill, target.trigger);
}

export function initTips() {
  tip = document.getElementById("tip");
  tip.addEventListener("pointerenter", () => clearTimeout(timer));
  tip.addEventListener("pointerleave", leave);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  addEventListener("scroll", follow, { passive: true });
}

/** Stay with the target while the page scrolls, as long as it is in sight. */
function follow() {
  if (target === null) return;
  const at = target.element.getBoundingClientRect();
  if (at.bottom < 0 || at.top > innerHeight) close();
  else place(at);
}

function later(element, fill, trigger) {
  clearTimeout(timer);
  timer = setTimeout(() => open(element, fill, trigger), DELAY_MS);
}

function leave() {
  clearTimeout(timer);
  timer = setTimeout(close, DELAY_MS); // time to move onto the tooltip itself
}

function open(element, fill, trigger) {
  clearTimeout(timer);
  const nodes = fill();
  if (nodes === null || !element.isConnected) {
    close();
    return;
  }
  if (target !== null && target.trigger !== trigger) attr(target.trigger, "aria-describedby", null);
  target = { element, fill, trigger };
  tip.replaceChildren(...nodes);
  tip.hidden = false;
  attr(trigger, "aria-describedby", "tip");
  place(element.getBoundingClientRect());
}

function place(at) {
  const own = tip.getBoundingClientRect();
  const left = Math.min(Math.max(GAP, at.left), document.documentElement.clientWidth - own.width - GAP);
  const below = at.bottom + GAP;
  const top = below + own.height > innerHeight ? Math.max(GAP, at.top - own.height - GAP) : below;
  tip.style.setProperty("left", `${left}px`);
  tip.style.setProperty("top", `${top}px`);
}

export function close() {
  clearTimeout(timer);
  if (target === null) return;
  attr(target.trigger, "aria-describedby", null);
  target = null;
  tip.hidden = true;
}
