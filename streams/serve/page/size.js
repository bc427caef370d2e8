// The size of a session over time: the main chain's chart with warnings and compactions drawn in,
// and below it the subagents, each in a lane of its own over the same time.

import { now } from "./api.js";
import { axis, Chart, colour, colours, dataTable, timeTicks } from "./chart.js";
import { attr, css, h, Keyed, setText, shown, svg, text, texts } from "./dom.js";
import { count, exact, guess, moment, percent, tokens, UNKNOWN } from "./format.js";
import { breakdownTip } from "./gauge.js";
import { chainName, chainWords, currentThresholds, doubtOf, leadingChain, levelOf, severityOf, untilOf } from "./status.js";
import { momentOf } from "./timeline.js";
import { tipped } from "./tip.js";

const HEIGHT = 260;
/** As good as no time: two things at one place stand in their order. */
const MOMENT = 0.001;
const LANE_W = 1000;
const LANE_H = 36;
/** Ends of the lanes' scale, of a decade. */
const ROUND = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
/** Room of the vertical axis: the lanes begin where the chart does. */
const AXIS_W = 54;

/** Room of a tick's words on the time axis, with decimals of a second. */
const TICK_W = 80;

/** Room above the window, so that its line is seen. */
const HEADROOM = 1.04;

/** Where no reading follows a compaction, its gap is so much of the axis. */
const GAP = 0.04;

/** The horizontal axis where the records have no times. */
const RECORDS = { label: "records of the session, in the order of the log", labelSize: 20, labelFont: "11px system-ui, sans-serif" };

/** What the legend names, each only where it is drawn. */
const KEYS = [
  ["size", "size"], ["window", ""], ["threshold", ""], ["compacting", "compacting"],
  ["compaction", "compaction"], ["failed", "failed"], ["lost", "compaction, outcome unknown"], ["reset", "cleared or restarted"],
  ["warned", ({ high_percent: edge }) => `warning below ${percent(edge)} used`],
  ["warned-high", ({ high_percent: edge }) => `warning at ${percent(edge)} used or more`],
  ["warned-critical", ({ critical_percent: edge }) => `warning at ${percent(edge)} used or more`],
];

/** How a compaction of a status is drawn, and what the legend calls it. */
const LOOKS = {
  done: { key: "compaction", paint: "--green" },
  failed: { key: "failed", paint: "--red" },
  running: { key: "compacting", paint: "--accent" },
  lost: { key: "lost", paint: "--faint" },
  reset: { key: "reset", paint: "--text", dashes: [2, 3] },
};

export class SizeChart {
  constructor() {
    this.chain = [];
    this.items = [];
    this.bands = [];
    this.warnings = [];
    this.view = null;
    this.byTime = true;
    this.readout = text();
    this.chart = new Chart({
      label: "Size",
      height: HEIGHT,
      options: (uPlot) => this.#options(uPlot),
    });
    this.table = dataTable("Readings", ["When", "Used", "Share", "Input", "Cache written", "Cache read"], () =>
      [...this.chain].reverse().slice(0, 500).map((point) => [
        moment(point.time_ms, now()), exact(point.used_tokens), percent(point.used_percent), exact(point.input_tokens), exact(point.cache_creation_tokens), exact(point.cache_read_tokens),
      ]));
    this.lanes = h("div", { class: "lanes", tabindex: "0", role: "region", "aria-label": "Subagents over the same time" });
    this.scale = text();
    this.lanesTitle = h("h3", { hidden: true }, "Subagents ", h("span", { class: "faint small" }, this.scale));
    this.keyed = new Keyed(this.lanes, (lane) => lane.chain.chain, lane);
    this.none = h("p", { class: "faint", hidden: true }, "No response has reported a size yet.");
    this.windowWords = text();
    this.keys = Object.fromEntries(KEYS.map(([name, words]) => [name, h("span", { class: `key ${name}` }, typeof words === "string" ? words : words(currentThresholds()))]));
    this.thresholdWords = text();
    this.keys.window.append(this.windowWords);
    this.keys.threshold.append(this.thresholdWords);
    this.legend = h("p", { class: "legend faint small" }, ...Object.values(this.keys));
    this.el = h("div", {}, this.none, this.chart.el, h("p", { class: "readout small faint", "aria-hidden": "true" }, this.readout), this.legend, this.table.el, this.lanesTitle, this.lanes);
  }

  stop() {
    this.chart.stop();
  }

  /** Show all points of all chains, the timeline's items, and the view. */
  set(points, items, view) {
    this.view = view;
    this.items = items;
    const wasByTime = this.byTime;
    this.byTime = points.filter((point) => point.time_ms !== null).length * 2 >= points.length;
    const placed = points.filter((point) => !this.byTime || point.time_ms !== null);
    this.leading = leadingChain(view).chain;
    this.chain = placed.filter((point) => point.chain === this.leading);
    const isEmpty = this.chain.length === 0;
    shown(this.none, isEmpty);
    for (const el of [this.chart.el, this.legend, this.table.el]) shown(el, !isEmpty);
    this.#setMarks();
    this.range = this.#reach(placed.map((point) => this.#x(point)));
    attr(this.chart.el, "aria-label", `Size of ${chainWords(view, this.leading)} ${this.byTime ? "over time" : "by record"}; the table below has the figures`);
    if (this.byTime !== wasByTime) this.chart.redraw(); // another axis
    if (!isEmpty) this.chart.set(this.#data());
    this.table.write();
    this.#setKeys();
    this.#setLanes(placed);
  }

  /** Find where compactions and warnings are drawn. */
  #setMarks() {
    const mine = this.items.filter((item) => item.chain === this.leading);
    this.bands = mine.filter((item) => item.kind === "compaction" && !item.document?.inherited).map((item) => ({
      ...LOOKS[item.status],
      start: this.#place(item.started_ms ?? item.ended_ms, item.place),
      end: this.#place(item.ended_ms ?? (item.status === "running" ? now() : item.started_ms), item.place),
    }));
    this.bands.push(...mine.filter((item) => item.kind === "context_reset").map((item) => ({
      ...LOOKS.reset, start: null, end: this.#place(item.time_ms, item.place),
    })));
    this.bands = this.bands.filter((band) => band.end !== null);
    this.warnings = mine.filter((item) => item.kind === "context_warning")
      .map((item) => ({ data: item.data, at: this.#place(item.time_ms, item.place) })).filter((warning) => warning.at !== null);
  }

  /** The horizontal axis, from the first to the last thing that is drawn; behind a last compaction with room for the gap. */
  #reach(xs) {
    if (xs.length === 0) return [0, 1];
    const marks = [...this.bands.flatMap(({ start, end }) => [start ?? end, end]), ...this.warnings.map(({ at }) => at)];
    const read = Math.max(...xs);
    const first = Math.min(...xs, ...marks);
    let last = Math.max(read, ...marks);
    if (last > read && this.view.attempt === null) last += (last - first) * GAP;
    if (this.byTime && this.view.attempt !== null) last = Math.max(last, now() / 1000);
    return first === last ? [first - 1, last + 1] : [first, last];
  }

  #setKeys() {
    const there = new Set(["size", ...this.bands.map((band) => band.key)]);
    const until = untilOf(this.view, leadingChain(this.view));
    if (until !== null && until.threshold_tokens <= this.#top()) there.add("threshold");
    setText(this.thresholdWords, until?.estimated ? `compaction expected at ~${tokens(until.threshold_tokens)}` : "compaction threshold");
    const { window } = leadingChain(this.view);
    if (window !== null) there.add("window");
    setText(this.windowWords, window === null ? "" : this.#windowWords(window));
    for (const { data } of this.warnings) there.add(["warned", levelOf(data)].filter(Boolean).join("-"));
    for (const [name, key] of Object.entries(this.keys)) shown(key, there.has(name));
  }

  #windowWords(window) {
    const size = guess(tokens(window), doubtOf(this.view, leadingChain(this.view)));
    return window <= this.#top() ? `window, ${size}` : `window, ${size}: above this chart`;
  }

  #x(point) {
    return this.byTime ? point.time_ms / 1000 : point.sequence;
  }

  /** Sizes by time; after a compaction or reset the size is unknown, which is a gap. */
  #data() {
    const rows = this.chain.map((point) => [this.#x(point), point.used_tokens]);
    for (const item of this.items) {
      const ends = item.kind === "context_reset" || (item.kind === "compaction" && item.status === "done");
      const at = this.#place(momentOf(item), item.place);
      if (ends && item.chain === this.leading && at !== null) rows.push([at, null]);
    }
    rows.sort((a, b) => a[0] - b[0]);
    // Up to the gap the size was the last one reported.
    for (let index = rows.length - 1; index > 0; index -= 1) {
      const [at, used] = rows[index];
      const [before, last] = rows[index - 1];
      if (used === null && last !== null) rows.splice(index, 0, [Math.max(before, at - MOMENT), last]);
    }
    return [rows.map((row) => row[0]), rows.map((row) => row[1])];
  }

  #top() {
    const chain = leadingChain(this.view);
    const peak = Math.max(...this.chain.map((point) => point.used_tokens), 1);
    return chain.window && peak * 5 >= chain.window ? Math.max(chain.window, peak) * HEADROOM : peak * 1.4;
  }

  #options(uPlot) {
    const accent = colour("--accent");
    return {
      legend: { show: false },
      padding: [14, 26, 0, 0],
      cursor: { y: false, points: { size: 7, fill: accent }, dataIdx: (plot, series, nearest, x) => stepAt(plot.data[0], nearest, x) },
      scales: {
        x: { time: this.byTime, range: () => this.range },
        y: { range: () => [0, this.#top()] },
      },
      axes: [this.byTime ? axis({ size: 32, values: timeTicks, space: TICK_W }) : axis({ size: 32, values: (_, ticks) => ticks.map(exact), ...RECORDS }), axis({ size: AXIS_W, values: (_, ticks) => ticks.map(tokens) })],
      series: [
        {},
        {
          stroke: accent, width: 1.75, fill: colour("--accent-wash"),
          paths: uPlot.paths.stepped({ align: 1 }), points: { show: this.chain.length < 80, size: 4, fill: accent },
        },
      ],
      hooks: {
        drawAxes: [(plot) => this.#drawBehind(plot)], // over the grid, below the curve
        draw: [(plot) => this.#drawWarnings(plot)],
        setCursor: [(plot) => this.#readOut(plot)],
      },
    };
  }

  /** Compactions as bands from start to end, and over them the window as a line and the threshold as a dashed one. */
  #drawBehind(plot) {
    const { ctx, bbox } = plot;
    const paint = colours("--amber", "--red", "--red-wash", "--green", "--green-wash", "--accent", "--accent-wash", "--faint", "--text", "--track");
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    for (const { start, end, paint: name, dashes = [] } of this.bands) {
      const x1 = clamp(plot.valToPos(end, "x", true), bbox);
      const x0 = clamp(start === null ? x1 : plot.valToPos(start, "x", true), bbox);
      ctx.fillStyle = paint[`${name}-wash`] ?? paint["--track"];
      if (x1 > x0) ctx.fillRect(x0, bbox.top, x1 - x0, bbox.height);
      ctx.strokeStyle = paint[name];
      ctx.setLineDash(dashes.map((length) => length * devicePixelRatio));
      line(ctx, x1, bbox.top, x1, bbox.top + bbox.height);
    }
    const across = (size, stroke, dashes) => {
      if (size === null) return;
      const y = plot.valToPos(size, "y", true);
      ctx.strokeStyle = stroke;
      ctx.setLineDash(dashes);
      if (y >= bbox.top) line(ctx, bbox.left, y, bbox.left + bbox.width, y);
    };
    ctx.lineWidth = 2 * devicePixelRatio;
    across(leadingChain(this.view).window, paint["--faint"], []);
    ctx.lineWidth = devicePixelRatio;
    across(untilOf(this.view, leadingChain(this.view))?.threshold_tokens ?? null, paint["--amber"], [6, 5]);
    ctx.restore();
  }

  /** Where something stands; without a time of its own just after the reading before it. */
  #place(timeMs, order) {
    if (!this.byTime) return order;
    if (timeMs !== null) return timeMs / 1000;
    const before = this.chain.findLast((point) => point.sequence < order);
    return before === undefined ? null : before.time_ms / 1000 + MOMENT;
  }

  #drawWarnings(plot) {
    const { ctx, bbox } = plot;
    const paint = colours("--red", "--amber", "--faint");
    ctx.save();
    const size = 5 * devicePixelRatio;
    for (const { data, at } of this.warnings) {
      const x = plot.valToPos(at, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      const y = plot.valToPos(data.used_tokens, "y", true) - size * 1.6;
      const level = levelOf(data);
      ctx.fillStyle = paint[{ critical: "--red", high: "--amber" }[level] ?? "--faint"];
      ctx.beginPath();
      if (level) {
        ctx.moveTo(x, y - size);
        ctx.lineTo(x + size, y + size * 0.7);
        ctx.lineTo(x - size, y + size * 0.7);
      } else {
        ctx.arc(x, y, size / 2, 0, 2 * Math.PI);
      }
      ctx.fill();
    }
    ctx.restore();
  }

  #readOut(plot) {
    const idx = plot.cursor.idxs?.[1] ?? null;
    const used = idx === null ? null : plot.data[1][idx];
    if (used === null || used === undefined) {
      setText(this.readout, "");
      return;
    }
    const x = plot.data[0][idx];
    const point = this.chain.find((each) => this.#x(each) === x && each.used_tokens === used);
    const when = this.byTime ? moment(x * 1000, now()) : `record ${exact(x)}`;
    const parts = point === undefined ? "" : ` · ${exact(point.input_tokens)} input, ${exact(point.cache_creation_tokens)} cache written, ${exact(point.cache_read_tokens)} cache read`;
    setText(this.readout, `${when} · ${count(used, "token")}${point?.used_percent == null ? "" : ` (${percent(point.used_percent)})`}${parts}`);
  }

  #setLanes(points) {
    const subagents = Object.values(this.view.chains).filter((chain) => chain.chain !== this.leading);
    for (const el of [this.lanesTitle, this.lanes]) shown(el, subagents.length > 0);
    const names = new Set(subagents.map((chain) => chain.chain));
    const sizes = points.filter((point) => names.has(point.chain)).map((point) => point.used_tokens);
    const top = roundedUp(Math.max(...sizes, 1));
    setText(this.scale, `each from 0 to ${tokens(top)} tokens, over the same time`);
    this.keyed.set(subagents.map((chain) => ({
      view: this.view, chain, top,
      name: chainName(this.view, chain.chain),
      severity: severityOf(this.view, chain),
      path: this.#lanePath(points.filter((point) => point.chain === chain.chain), top),
    })));
  }

  #lanePath(points, top) {
    if (points.length === 0) return "";
    const [from, to] = this.range;
    const at = (point) => [((this.#x(point) - from) / (to - from)) * LANE_W, LANE_H - (point.used_tokens / top) * (LANE_H - 4)];
    const [x0] = at(points[0]);
    let d = `M${x0.toFixed(1)} ${LANE_H}`;
    for (const point of points) {
      const [x, y] = at(point);
      d += `H${x.toFixed(1)}V${y.toFixed(1)}`;
    }
    const [x1] = at(points.at(-1));
    return `${d}H${Math.min(LANE_W, x1 + 4).toFixed(1)}V${LANE_H}z`;
  }
}

/** The step that a place of the axis is in: a size holds from its reading to the next one. Null before the first. */
function stepAt(xs, nearest, x) {
  let index = nearest;
  while (index >= 0 && xs[index] > x) index -= 1;
  while (index + 1 < xs.length && xs[index + 1] <= x) index += 1;
  return index < 0 ? null : index;
}

/** The next round figure. */
function roundedUp(size) {
  const decade = 10 ** Math.floor(Math.log10(size));
  return Math.ceil(ROUND.find((step) => size <= step * decade) * decade);
}

function lane() {
  const t = texts("name", "model", "used", "top");
  const path = svg("path", {});
  const strip = svg("svg", { viewBox: `0 0 ${LANE_W} ${LANE_H}`, preserveAspectRatio: "none", class: "lane-strip", "aria-hidden": "true" }, path);
  let current = null;
  let session = null;
  const el = h("div", { class: "lane", tabindex: "0", role: "group" },
    h("div", { class: "lane-head" }, h("strong", {}, t.name), h("span", { class: "faint" }, t.model), h("span", { class: "lane-used" }, t.used)),
    h("div", { class: "lane-plot" }, h("div", { class: "lane-scale faint", "aria-hidden": "true" }, h("span", {}, t.top), h("span", {}, "0")), strip));
  css(el, "--axis", `${AXIS_W}px`);
  tipped(el, () => breakdownTip(session, current));
  const update = ({ view, chain, name, top, severity, path: d }) => {
    [session, current] = [view, chain];
    attr(el, "aria-label", `Subagent ${name}`);
    attr(el, "data-severity", severity);
    setText(t.name, name);
    setText(t.model, chain.model ?? "");
    setText(t.top, tokens(top));
    const doubt = doubtOf(view, chain);
    const whole = chain.window === null ? "" : ` of ${guess(tokens(chain.window), doubt)}`;
    setText(t.used, chain.used_tokens === null ? UNKNOWN : `${guess(percent(chain.used_percent), doubt)} · ${tokens(chain.used_tokens)}${whole}`);
    attr(path, "d", d);
  };
  return { el, update };
}

function line(ctx, x0, y0, x1, y1) {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

function clamp(x, bbox) {
  return Math.min(Math.max(x, bbox.left), bbox.left + bbox.width);
}
