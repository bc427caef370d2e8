// Analytics: compactions of all sessions: how many, how long, how much they saved, what goes wrong.

import { get, now, query } from "./api.js";
import { axis, Chart, colour, dataTable, timeTicks } from "./chart.js";
import { h, Keyed, segments, setText, shown, text, texts } from "./dom.js";
import { count, duration, exact, percent, folderOf, shortIds, thrashWords, tokens, UNKNOWN } from "./format.js";
import { note, skeleton, showError } from "./notes.js";
import { sessionLink } from "./row.js";
import * as stats from "./stats.js";
import { ModelTable, TriggerTable } from "./stats_tables.js";
import { currentThresholds, silence, withThresholds } from "./status.js";

const REFRESH_MS = 15_000;
/** Where the figures could not be had, they are asked for again so soon. */
const RETRY_MS = 3_000;
/** Where answers were of two generations, so that they do not fit together. */
const AGAIN_MS = 500;
/** Sessions whose latest compactions are looked at: those active last. */
const LOOKED_AT = 1_000;
const PAGE = 200;
const CHART_HEIGHT = 200;
const COLUMNS = 18;

const PRECISION_NOTE = "A median, p95 or p99 with ~ is off by at most 2%, as there were too many values to store each; all other figures are exact. Compactions that a runtime prepared in the background are in no duration.";

const RANGES = [
  ["24h", "24 hours", 24],
  ["7d", "7 days", 24 * 7],
  ["30d", "30 days", 24 * 30],
  ["all", "All", null],
];

export class Analytics {
  constructor(host, parameters, shell) {
    this.host = host;
    this.shell = shell;
    this.stopped = new AbortController();
    this.range = RANGES.find(([name]) => name === parameters.get("range"));
    this.charts = [];
  }

  start() {
    this.host.replaceChildren(h("h1", {}, "Analytics"), skeleton(8));
    this.timer = setInterval(() => this.#refresh(), REFRESH_MS);
    this.#refresh();
  }

  stop() {
    this.stopped.abort();
    clearInterval(this.timer);
    clearTimeout(this.soon);
    for (const chart of this.charts) chart.stop();
  }

  hurry() {
    this.#refresh();
  }

  async #refresh() {
    if (this.refreshing || document.hidden) return;
    this.refreshing = true;
    const { signal } = this.stopped;
    try {
      const since = this.range?.[2] === null ? "" : longAgo();
      const [byHour, byModel, { views, generations }] = await Promise.all([
        get(`v1/stats${query({ by: "hour", since })}`, { signal }), get("v1/stats?by=model", { signal }), this.#views(signal),
      ]);
      if (new Set([byHour.generation, byModel.generation, ...generations]).size > 1) {
        this.#again(AGAIN_MS); // another generation came meanwhile: never figures of two side by side
        return;
      }
      this.#show(byHour, byModel, views);
      if (this.range?.[2] === null && since !== "") this.#again(0); // older ones are needed as well
    } catch (error) {
      if (signal.aborted) return;
      this.#again(Math.max(RETRY_MS, (error.retryAfterS ?? 0) * 1_000));
      if (this.hasFigures) return; // the banner says so; the figures stay
      showError(this.host, error, () => this.#refresh(), h("h1", {}, "Analytics"));
    } finally {
      this.refreshing = false;
    }
  }

  #again(afterMs) {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.#refresh(), afterMs);
  }

  /** Whether figures are in sight: then they stay while the server is away. */
  get hasFigures() {
    return this.grid !== undefined;
  }

  /** Fetch the sessions active last, and all that compact now: what aggregates do not hold. */
  async #views(signal) {
    const views = new Map();
    const generations = new Set();
    for (const filter of [{ state: "compacting" }, {}]) {
      let cursor = null;
      let looked = 0;
      do {
        const answer = withThresholds(await get(`v1/sessions${query({ sort: "recent", ...filter, limit: PAGE, cursor })}`, { signal }));
        generations.add(answer.generation);
        for (const view of answer.sessions) views.set(view.session_id, view);
        looked += answer.sessions.length;
        cursor = answer.next;
      } while (cursor !== null && looked < LOOKED_AT);
    }
    return { views: [...views.values()], generations };
  }

  #show(byHour, byModel, views) {
    const { total } = byHour;
    const counts = stats.countsOf(total);
    if (counts.ended === 0 && !stats.stalled(views, now()).length) {
      for (const chart of this.charts) chart.stop();
      this.charts = [];
      this.grid = undefined;
      this.host.replaceChildren(h("h1", {}, "Analytics"), note("info", "No compactions yet", views.length === 0
        ? h("p", {}, "No session so far. The ", h("a", { href: "#/" }, "overview"), " shows where sessions come from.")
        : h("p", {}, `${count(views.length, "session")} so far, and none has been compacted. The first one that is appears here.`)));
      return;
    }
    this.byHour = byHour.by;
    this.range ??= RANGES.find((range) => !isEmpty(this.#ofRange(range).columns)) ?? RANGES.at(-1);
    if (this.grid === undefined) this.#build();
    this.succeeded = counts.succeeded;
    this.#figures(total, counts);
    this.#hours();
    this.tokensCard.set(stats.barsOf(total.pre_tokens, COLUMNS), total.pre_tokens);
    this.durationCard.set(stats.barsOf(total.duration_ms, COLUMNS), total.duration_ms);
    const { tenths, measured } = stats.remainingTenths(views);
    this.ratioCard.set(measured ? tenths : [], null, measured);
    this.triggers.set(total);
    this.models.set(byModel.by);
    this.#trouble(views);
  }

  #build() {
    const tileHost = h("dl", { class: "tiles" });
    this.tiles = new Keyed(tileHost, ([name]) => name, tile);
    const ranges = segments("Time", RANGES, this.range[0], (name) => this.#choose(name));
    this.hoursTitle = text();
    this.hourChart = this.#chart("Compactions over time; the table below has the figures", (uPlot) => timeOptions(uPlot, this.unit));
    this.hourTable = dataTable("Compactions over time", ["Time", "Automatic, idle", "Manual", "Unknown trigger"], () =>
      transposed(this.columns).filter((row) => row[1] + row[2] + row[3] > 0).reverse()
        .map(([at, ...each]) => [this.unit.words(at * 1000), ...each.map(exact)]));
    this.tokensCard = this.#histogram("Size before compaction", stats.tokensEdge, tokens, "Tokens, above – up to");
    this.durationCard = this.#histogram("Duration", stats.durationEdge, duration, "Above – up to");
    this.ratioCard = this.#histogram("What remains after compaction", (share) => `${share}%`, null, "Of the size before, from – below");
    this.triggers = new TriggerTable();
    this.models = new ModelTable();
    this.elsewhere = text();
    this.thrashWhat = text();
    this.stalledWhat = text();
    this.thrashHost = h("ul", { class: "plain-list" });
    this.stalledHost = h("ul", { class: "plain-list" });
    this.hoursLegend = h("p", { class: "legend faint small" },
      h("span", { class: "key auto" }, "automatic, idle"), h("span", { class: "key manual" }, "manual"), h("span", { class: "key unknown-trigger" }, "unknown trigger"));
    this.hoursNone = h("p", { class: "faint", hidden: true }, "No compaction in this time.");
    this.grid = h(
      "div",
      { class: "grid" },
      h("section", { class: "card wide", "aria-labelledby": "hours-title" },
        h("div", { class: "card-head" }, h("h2", { id: "hours-title" }, this.hoursTitle), ranges.el),
        this.hoursNone, this.hourChart.el,
        this.hoursLegend, h("p", { class: "faint small" }, this.elsewhere),
        this.hourTable.el),
      this.tokensCard.el, this.durationCard.el, this.ratioCard.el,
      this.triggers.el,
      h("div", { class: "pair" }, h("section", { class: "card", "aria-labelledby": "thrash-title" }, h("h2", { id: "thrash-title" }, "Thrash"),
        h("p", { class: "faint small" }, this.thrashWhat), this.thrashHost),
      h("section", { class: "card", "aria-labelledby": "stalled-title" }, h("h2", { id: "stalled-title" }, "Stalled compactions"),
        h("p", { class: "faint small" }, this.stalledWhat), this.stalledHost)),
      this.models.el,
      h("p", { class: "wide faint small" }, PRECISION_NOTE),
    );
    this.host.replaceChildren(h("div", { class: "page-head" }, h("h1", {}, "Analytics"), h("p", { class: "faint" }, "All sessions, at any time")),
      tileHost, this.grid);
  }

  #chart(label, options) {
    const chart = new Chart({ label, height: CHART_HEIGHT, options });
    this.charts.push(chart);
    return chart;
  }

  #choose(name) {
    this.range = RANGES.find(([each]) => each === name);
    history.replaceState(null, "", `#/analytics${query({ range: name })}`);
    this.#hours();
    if (this.range[2] === null) this.#refresh();
  }

  #ofRange([, , hours]) {
    return stats.overTime(this.byHour, now(), hours);
  }

  #hours() {
    const { unit, columns: all } = this.#ofRange(this.range);
    const isOther = this.unit !== undefined && this.unit !== unit;
    this.unit = unit;
    this.columns = all;
    setText(this.hoursTitle, `Compactions per ${unit.name}`);
    const isNone = isEmpty(all);
    shown(this.hoursNone, isNone);
    for (const el of [this.hourChart.el, this.hoursLegend, this.hourTable.el]) shown(el, !isNone);
    if (!isNone) this.hourChart.set(stacked(all));
    if (isOther) this.hourChart.redraw(); // another axis
    this.hourTable.write();
    const [, ...drawn] = all.map((column) => column.reduce((sum, value) => sum + value, 0));
    const untimed = this.byHour.unknown === undefined ? 0 : stats.countsOf(this.byHour.unknown).succeeded;
    setText(this.elsewhere, stats.elsewhereWords(this.succeeded, drawn.reduce((sum, value) => sum + value, 0), untimed));
  }

  #figures(total, counts) {
    const { duration_ms: took, pre_tokens: before } = total;
    const size = (name) => stats.percentileWords(before, name, tokens);
    const time = (name) => stats.percentileWords(took, name, duration);
    const remains = stats.remainingShare(total);
    const each = stats.messagesEach(total);
    const of = (known) => (known < counts.succeeded ? ` · known for ${exact(known)}` : "");
    this.tiles.set([
      ["Compactions", exact(counts.succeeded), triggerWords(counts)],
      ["Size before", tokens(before.mean), before.count > 1 ? `on average · median ${size("p50")} · p95 ${size("p95")}${of(before.count)}` : before.count ? `the only one${of(1)}` : "no size is known"],
      ["Duration", duration(took.mean), took.count > 1 ? `on average · median ${time("p50")} · p95 ${time("p95")} · p99 ${time("p99")}${of(took.count)}` : took.count ? `the only one${of(1)}` : "none is known of what was waited for"],
      ["Messages between compactions", each === null ? UNKNOWN : exact(each), "on average"],
      ["Tokens saved", total.measured ? tokens(total.saved_tokens) : UNKNOWN,
        [`by ${count(total.measured, "measured compaction")}`, remains === null ? "" : `${percent(remains)} of the size before remains`].filter(Boolean).join(" · ")],
      ["Failed", counts.ended === 0 ? UNKNOWN : percent((counts.failed / counts.ended) * 100), otherEnds(counts)],
    ]);
  }

  /** `format` writes an edge, `figure` a figure of the distribution. */
  #histogram(title, format, figure, head) {
    const id = `h-${title.toLowerCase().replaceAll(" ", "-")}`;
    const summary = text();
    let bars = [];
    const chart = this.#chart(`${title}: distribution; the table below has the figures`, (uPlot) => histogramOptions(uPlot, () => bars, format));
    const table = dataTable(title, [head, "Compactions"], () => bars.map((bar) => [stats.bandWords(bar, format), exact(bar.count)]));
    const none = h("p", { class: "faint", hidden: true }, "Nothing was measured yet.");
    const el = h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), h("p", { class: "faint small" }, summary), none, chart.el, table.el);
    const set = (latest, distribution, measured = 0) => {
      bars = latest;
      const isEmpty = latest.length === 0;
      shown(none, isEmpty);
      shown(chart.el, !isEmpty);
      shown(table.el, !isEmpty);
      if (distribution !== null) {
        const { mean, max } = distribution;
        const [median, p95] = ["p50", "p95"].map((name) => stats.percentileWords(distribution, name, figure));
        setText(summary, mean === null ? "" : `average ${figure(mean)} · median ${median} · p95 ${p95} · largest ${figure(max)}`);
      } else {
        setText(summary, measured ? `${count(measured, "compaction")}: the latest of the sessions active last` : "");
      }
      if (!isEmpty) chart.set([latest.map((_, index) => index), latest.map((bar) => bar.count)]);
      table.write();
    };
    return { el, set };
  }

  #trouble(views) {
    const nowMs = now();
    const { thrash_compactions: compactions, thrash_within_ms: withinMs, stalled_after_ms: stalledMs } = currentThresholds();
    setText(this.thrashWhat, `Sessions with ${compactions} compactions within less than ${duration(withinMs)}: the window fills again at once.`);
    setText(this.stalledWhat, `Open compactions with no heartbeat for ${duration(stalledMs)} or more.`);
    list(this.thrashHost, stats.thrashed(views).map((view) => [view, thrashWords(view.status.thrash, nowMs)]), "None among the sessions active last.");
    list(this.stalledHost, stats.stalled(views, nowMs).map((view) => [view, `silent for ${duration(silence(view, nowMs))}`]), "None.");
  }
}

/** Whether columns of hours have no compaction. */
function isEmpty([, ...counts]) {
  return counts.every((column) => column.every((value) => value === 0));
}

/** The first hour (UTC) of the longest range but all, as the server takes it. */
function longAgo() {
  const hours = RANGES.at(-2)[2];
  return new Date(now() - hours * 3_600_000).toISOString().slice(0, 13);
}

function list(host, rows, none) {
  const shorts = shortIds(rows.map(([view]) => view.session_id));
  const items = rows.slice(0, 20).map(([view, words]) => {
    const folder = folderOf(view);
    const short = shorts.get(view.session_id);
    return h("li", {}, h("a", { href: sessionLink(view) }, folder || short, " ", h("span", { class: "mono faint" }, folder ? short : "")), h("span", { class: "faint" }, words));
  });
  if (rows.length > items.length) items.push(h("li", { class: "faint" }, `and ${exact(rows.length - items.length)} more`));
  host.replaceChildren(...(items.length ? items : [h("li", { class: "faint" }, none)]));
}

/** One figure of all compactions, with its name and what more there is to it. */
function tile([name]) {
  const t = texts("figure", "more");
  const update = ([, figure, more]) => {
    setText(t.figure, figure);
    setText(t.more, more);
  };
  return { el: h("div", {}, h("dt", {}, name), h("dd", { class: "tile-figure" }, t.figure), h("dd", { class: "faint small" }, t.more)), update };
}

/** Compactions that succeeded, by trigger. */
function triggerWords(counts) {
  const more = [counts.idle && `${exact(counts.idle)} idle`, counts.unknown_trigger && `${exact(counts.unknown_trigger)} unknown trigger`];
  return [`${exact(counts.automatic)} automatic`, `${exact(counts.manual)} manual`, ...more].filter(Boolean).join(" · ");
}

/** Of how many attempts, and what else they came to: an unknown outcome is no failure. */
function otherEnds({ failed, blocked, unknown, ended }) {
  const more = [blocked && `${exact(blocked)} blocked`, unknown && `${exact(unknown)} unknown outcome`];
  return [`${exact(failed)} of ${count(ended, "attempt")}`, ...more.filter(Boolean)].join(" · ");
}

function transposed(columns) {
  return columns[0].map((_, index) => columns.map((column) => column[index]));
}

/** Columns on top of each other; drawn from the highest down, so each hides what is below it. */
function stacked([hours, automatic, manual, unknownTrigger]) {
  const two = automatic.map((value, index) => value + manual[index]);
  return [hours, two.map((value, index) => value + unknownTrigger[index]), two, automatic];
}

function bars(uPlot, stroke, shape = { size: [0.75, 48, 1] }) {
  return { stroke, fill: stroke, width: 0, points: { show: false }, paths: uPlot.paths.bars({ radius: 0.15, ...shape }) };
}

/** A bar begins where its hour, day or month does, and ends just before the next one. */
const OF_A_TIME = { size: [0.92, Infinity, 1], align: 1, radius: 0.1 };
const HOUR_S = 3_600;

/** Where a bar is an hour, so are the ticks between which it stands, or more. */
const HOURS = [1, 2, 3, 6, 12, 24, 48, 168].map((hours) => hours * HOUR_S);
/** Compactions are whole: a tick between two would be none. */
const WHOLE = [1, 2, 5].flatMap((step) => [1, 10, 100, 1_000, 10_000].map((power) => step * power)).sort((a, b) => a - b);
const whole = (plot, splits) => splits.map((value) => (Number.isInteger(value) ? exact(value) : null));
const fromZero = (plot, low, high) => [0, Math.max(1, high * 1.1)];

function timeOptions(uPlot, unit) {
  const ofHours = unit.name === "hour" ? { incrs: HOURS } : {};
  return {
    legend: { show: false }, cursor: { show: false }, padding: [8, 24, 0, 0],
    scales: { x: { time: true, range: (plot, low, high) => [low, unit.next(high * 1_000) / 1_000] }, y: { range: fromZero } },
    axes: [axis({ size: 32, grid: { show: false }, values: timeTicks, ...ofHours }), axis({ size: 40, values: whole, incrs: WHOLE })],
    series: [{}, ...["--faint-bar", "--second", "--accent"].map((name) => bars(uPlot, colour(name), OF_A_TIME))],
  };
}

function histogramOptions(uPlot, current, format) {
  return {
    legend: { show: false }, cursor: { show: false }, padding: [8, 30, 0, 0],
    scales: { x: { time: false, range: () => [-0.6, current().length - 0.4] }, y: { range: fromZero } },
    axes: [
      axis({
        size: 32,
        grid: { show: false },
        splits: () => stats.edgeTicks(current()),
        values: (plot, ticks) => {
          const step = Math.max(1, Math.ceil(current().length / Math.max(2, Math.floor(plot.width / 80))));
          return stats.edgeWords(current(), ticks, step, format);
        },
      }),
      axis({ size: 40, values: whole, incrs: WHOLE }),
    ],
    series: [{}, bars(uPlot, colour("--accent"))],
  };
}
