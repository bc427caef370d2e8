// Charts by uPlot, where this installation has it; else a note says what is missing. A table below
// each chart has its figures either way.

import { h, scrolling } from "./dom.js";
import { CLOCK, TIME } from "./format.js";

let library;

/** uPlot, loaded once; null where it is not in this installation. */
function chartLibrary() {
  library ??= import("./vendor/uPlot.esm.js").then(
    (module) => {
      const sheet = new URL("./vendor/uPlot.min.css", import.meta.url).href;
      document.head.append(h("link", { rel: "stylesheet", href: sheet }));
      return module.default;
    },
    () => null,
  );
  return library;
}

/** The colours that custom properties stand for now, by name, as a canvas takes them. */
export function colours(...names) {
  const probe = document.body.appendChild(h("i", { hidden: true }));
  const computed = getComputedStyle(probe);
  const values = {};
  for (const name of names) {
    probe.style.setProperty("color", `var(${name})`);
    values[name] = computed.color;
  }
  probe.remove();
  return values;
}

export function colour(name) {
  return colours(name)[name];
}

/**
 * A chart in a box that keeps its height: {el, set(data), redraw()}. `options(uPlot, width)` are
 * uPlot's; they are asked for again when the theme changes, so that colours follow.
 */
export class Chart {
  #plot = null;
  #data = null;
  #uPlot = undefined;

  constructor({ label, height, options }) {
    this.height = height;
    this.options = options;
    this.el = h("div", { class: "chart-place", role: "img", "aria-label": label });
    this.el.style.setProperty("min-height", `${height}px`);
    this.resized = new ResizeObserver(() => {
      const width = this.el.clientWidth;
      if (this.#plot !== null && width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height: this.height });
      else if (this.#plot === null) this.#draw();
    });
    this.resized.observe(this.el);
    this.themed = () => this.redraw();
    document.addEventListener("contextgauge:theme", this.themed);
    this.media = matchMedia("(prefers-color-scheme: dark)");
    this.media.addEventListener("change", this.themed);
    chartLibrary().then((uPlot) => {
      this.#uPlot = uPlot;
      this.#draw();
    });
  }

  stop() {
    this.resized.disconnect();
    document.removeEventListener("contextgauge:theme", this.themed);
    this.media.removeEventListener("change", this.themed);
    this.#plot?.destroy();
    this.#plot = null;
  }

  set(data) {
    this.#data = data;
    if (this.#plot === null) this.#draw();
    else this.#plot.setData(data);
  }

  /** Draw the chart again, for other colours or other options. */
  redraw() {
    this.#plot?.destroy();
    this.#plot = null;
    this.#draw();
  }

  #draw() {
    if (this.#uPlot === null) {
      this.#missing();
      return;
    }
    const width = this.el.clientWidth;
    if (this.#uPlot === undefined || this.#data === null || width === 0 || this.#plot !== null) return;
    this.#plot = new this.#uPlot({ ...this.options(this.#uPlot), width, height: this.height }, this.#data, this.el);
  }

  #missing() {
    if (this.el.firstChild !== null) return;
    this.el.removeAttribute("role");
    this.el.append(
      h("p", { class: "chart-missing" }, "This installation has no chart library (uPlot): the figures are in the table below. ",
        h("span", { class: "faint" }, "It was built without Node.js; in a checkout, make page fetches it.")),
    );
  }
}

/** Axes in the page's colours. */
export function axis(more = {}) {
  const faint = colour("--faint");
  const line = { stroke: colour("--line"), width: 1 };
  return { stroke: faint, grid: line, ticks: { ...line, size: 4 }, font: "11px system-ui, sans-serif", ...more };
}

const TICK_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const TICK_MONTH = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric" });
const DAY_S = 86_400;

/** Clocks with one to three decimals of a second. */
const FINE_CLOCKS = [1, 2, 3].map((digits) => new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: digits }));

/** A clock on which ticks so far apart, less than a minute, differ. */
function clockFor(apart) {
  if (apart >= 1) return CLOCK;
  const [, decimals] = String(apart).split(".");
  return FINE_CLOCKS[Math.min(decimals.length, FINE_CLOCKS.length) - 1];
}

/** The words of a time axis: days, times, or times with seconds, by how far the ticks are apart. */
export function timeTicks(plot, ticks, axisIndex, space, apart) {
  const words = apart >= 28 * DAY_S ? TICK_MONTH : apart >= DAY_S ? TICK_DAY : apart >= 60 ? TIME : clockFor(apart);
  return ticks.map((tick) => {
    const isMidnight = apart < DAY_S && new Date(tick * 1000).getHours() + new Date(tick * 1000).getMinutes() === 0;
    return (isMidnight ? TICK_DAY : words).format(tick * 1000);
  });
}

/** A figure's table, folded: the chart's text alternative. `rows()` is asked for when it opens. */
export function dataTable(caption, heads, rows) {
  const body = h("tbody");
  const details = h(
    "details",
    { class: "data" },
    h("summary", {}, "Show as table"),
    scrolling(caption,
      h("table", {}, h("caption", { class: "sr" }, caption), h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), body)),
  );
  const write = () => {
    if (!details.open) return;
    body.replaceChildren(
      ...rows().map((cells) => h("tr", {}, ...cells.map((cell, index) => (index ? h("td", {}, cell) : h("th", { scope: "row" }, cell))))),
    );
  };
  details.addEventListener("toggle", write);
  return { el: details, write };
}
