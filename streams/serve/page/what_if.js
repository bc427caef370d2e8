// What a session would have been like with another trigger or window: its growth, replayed by the server.

import { get, query, sessionPath } from "./api.js";
import { amount } from "./costs.js";
import { h, plain, scrolling, segments, shown } from "./dom.js";
import { count, duration, exact, guess, tokens, UNKNOWN } from "./format.js";
import { MAIN } from "./status.js";

const PERCENTS = ["60", "70", "80", "90"];
const WINDOWS = [["", "as recorded"], ["200000", "200K"], ["400000", "400K"], ["1000000", "1M"]];

/** Why a recorded compaction does not follow from the trigger. */
const REASONS = {
  begun_below: "began below the trigger",
  begun_late: "an earlier request had reached it",
  attempt_failed: "an attempt before it failed",
  no_response_before: "no response before it",
};
const NAMED = 5;

/**
 * The section: {el, set(changes)}. The server replays only when it is opened, or something else is
 * chosen; `changes` says what compactions there are, and after a new one it is asked again.
 */
export function whatIfPart(address, signal) {
  let answer = null;
  let own = "";
  let chosen = null;
  let changes = null;
  let latest = 0;
  let sizes = null;
  const note = h("p", { class: "faint small", role: "status" });
  const results = h("div", { hidden: true });
  const choice = h("div");
  const input = h("input", { type: "text", inputmode: "decimal", size: 13, maxlength: 13, placeholder: "65% or 150000", "aria-label": "Another size, percent of the window or tokens" });
  const windows = h("select", { "aria-label": "Window", on: { change: () => ask() } }, ...WINDOWS.map(([value, words]) => h("option", { value }, words)));
  const models = h("select", { "aria-label": "Model", on: { change: () => show() } });
  const modelLabel = h("label", { class: "field", hidden: true }, "Model ", models);

  const choose = (value) => {
    chosen = value;
    show();
  };
  const segmented = () => {
    const options = [...PERCENTS, ...(own ? [own] : [])].map((value) => [value, sizeWords(value)]);
    sizes = segments("Compact at", options, chosen, choose);
    choice.replaceChildren(sizes.el);
  };
  const form = h("form", { class: "what-if-form", on: { submit: (event) => {
    event.preventDefault();
    const value = input.value.trim().replace(/%$/, "");
    if (value === "" || PERCENTS.includes(value)) {
      if (value) chosen = value;
    } else {
      own = chosen = value;
    }
    segmented();
    ask();
  } } },
  h("span", { class: "field" }, "Compact at ", choice),
  h("span", { class: "field" }, "or ", input, h("button", { type: "submit", class: "quiet" }, "Compare")),
  h("label", { class: "field" }, "Window ", windows), modelLabel);

  async function ask() {
    const number = latest += 1;
    note.textContent = "Replaying…";
    shown(note, true);
    try {
      const parameters = { trigger: [...PERCENTS, ...(own ? [own] : [])].join(","), window: windows.value };
      const { what_if: found } = await get(sessionPath(address, `/what-if${query(parameters)}`), { signal });
      if (number !== latest) return; // something else was chosen meanwhile
      answer = found;
      note.textContent = "";
      chosen ??= advised(found);
    } catch (error) {
      if (signal.aborted || number !== latest) return;
      note.textContent = plain(error.detail || error.message);
      if (error.status === 422) own = ""; // no size: what was shown before stays
      if (error.status === 422 && !PERCENTS.includes(chosen)) chosen = PERCENTS[0];
      segmented();
    }
    shown(note, note.textContent !== "");
    show();
  }

  function show() {
    shown(results, answer !== null && answer.models.length > 0);
    if (answer === null) return;
    if (answer.models.length === 0) {
      note.textContent = "No response with a size: there is nothing to replay.";
      shown(note, true);
      return;
    }
    const names = answer.models.map(({ model }) => model ?? UNKNOWN);
    if (models.length !== names.length) models.replaceChildren(...names.map((name, index) => h("option", { value: String(index) }, name)));
    shown(modelLabel, names.length > 1);
    sizes.mark(chosen);
    const model = answer.models[Number(models.value) || 0];
    const index = [...PERCENTS, ...(own ? [own] : [])].indexOf(chosen);
    results.replaceChildren(...resultsOf(answer, model, Math.min(index, model.settings.length - 1)));
  }

  segmented();
  const el = h("details", { class: "card raw-card what-if", on: { toggle: () => el.open && ask() } },
    h("summary", {}, h("h2", {}, "What if"), " ", h("span", { class: "faint small" }, "another size at which to compact, another window")),
    form, note, results);
  const set = (now) => {
    const isNew = changes !== null && now !== changes;
    changes = now;
    if (isNew && el.open) ask();
  };
  return { el, set };
}

/** What is shown first: the size that is advised, else the first one. */
function advised({ models: [model], settings }) {
  const at = settings.findIndex(({ name }) => name === model?.advice.setting);
  return PERCENTS[at] ?? PERCENTS[0];
}

function sizeWords(value) {
  const number = Number(value.replaceAll("_", ""));
  return number > 100 ? tokens(number) : `${value}%`;
}

function resultsOf(answer, model, index) {
  const setting = model.settings[index];
  return [
    h("p", { class: "what-if-advice" }, adviceWords(model)),
    ...(setting.chains_unknown > 0 ? [h("p", { class: "small bad" }, `${count(setting.chains_unknown, "chain")} as recorded: no compaction was recorded whose size afterwards could be taken.`)] : []),
    scrolling("Recorded against the other setting", tableOf(model, setting), "whole"),
    boundariesPart(answer, model),
    rulesPart(answer, index, setting.name),
    h("p", { class: "faint small" },
      "The context grows as it did, and is compacted elsewhere. Amounts are list prices; what an agent reads again after a compaction is not in them, so a small size looks better than it is. ",
      answer.is_whole ? "" : "Of the newest responses only: older ones are no longer stored. ",
      "For other sessions of a model, and for strategies of the compaction engine: ", h("code", {}, "contextgauge what-if"), "."),
  ];
}

/** What it took as recorded and under the setting, with the difference below. */
function tableOf(model, { name, totals, change, trigger_tokens: size, break_even: paid }) {
  const { recorded, trigger } = model;
  const [was, is] = [recorded, totals].map(({ usage, summaries }) => ({
    fresh: usage.input + summaries.input,
    written: usage.write_5m + usage.write_1h + summaries.write_5m + summaries.write_1h,
    read: usage.read + summaries.read,
    output: usage.output + summaries.output,
  }));
  const number = (words, before, after, form = exact) => [words, form(before), form(after), before === after ? "" : signed(after - before, form)];
  const rows = [
    ["Compacted at", trigger === null ? UNKNOWN : guess(exact(trigger.tokens), trigger.source === "learned" ? "learned" : null), exact(size)],
    number("Compactions", recorded.compactions, totals.compactions),
    ["Time of compactions", waitWords(recorded), waitWords(totals)],
    ["Paid off after, median", paidWords(model.break_even), paidWords(paid)],
    ["Cost", costWords(recorded, "cost"), costWords(totals, "cost"), changeWords(change)],
    ["with a cache always warm", costWords(recorded, "warm"), costWords(totals, "warm"), change === null ? "" : difference(change.warm)],
    ["with a cache always cold", costWords(recorded, "cold"), costWords(totals, "cold"), change === null ? "" : difference(change.cold)],
    number("Fresh input", was.fresh, is.fresh, tokens),
    number("Written to the cache", was.written, is.written, tokens),
    number("Read from the cache", was.read, is.read, tokens),
    number("Output", was.output, is.output, tokens),
    number("Warnings", recorded.warnings, totals.warnings),
  ];
  if (recorded.pins || totals.pins) rows.push(["Turns of the user kept", pinWords(recorded), pinWords(totals)]);
  if (totals.overflows > recorded.overflows) rows.push(number("Responses beyond the window", recorded.overflows, totals.overflows));
  const heads = ["", "Recorded", `At ${name}`].map((words, at) => h("th", { scope: "col" }, words, at === 2 ? h("span", { class: "change" }, "Difference") : null));
  return h("table", { class: "figures" }, h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...rows.map(([words, before, after, more = ""]) => h("tr", {}, h("th", { scope: "row" }, words),
      h("td", {}, before), h("td", {}, after, h("span", { class: "faint change" }, more))))));
}

/** What to set, and how sure that is. */
function adviceWords({ advice }) {
  const { verdict, runtime_setting: setting, change, more_compactions: more } = advice;
  if (verdict === "unknown_price") return "No advice: a price is unknown.";
  if (setting === null || change === null) {
    return verdict === "no_difference" ? "None of these sizes would have cost less." : "No advice: none of these sizes could be compared, or used.";
  }
  const [[name, value]] = Object.entries(setting);
  const what = `${name} ${exact(value)}${value === advice.trigger_tokens ? "" : ` (a compaction at ${exact(advice.trigger_tokens)})`}`;
  if (verdict === "no_difference") return `No difference that exceeds the uncertainty. The cheapest is ${what}: ${changeWords(change)}.`;
  const doubts = [
    ...(advice.is_lowest ? ["smaller sizes were not compared"] : []),
    ...["warm", "cold"].filter((cache) => Number(change[cache]) > 0).map((cache) => `with a cache always ${cache} it costs more`),
  ];
  const compactions = more === 0 ? "as many compactions" : `${exact(Math.abs(more))} ${more > 0 ? "more" : "fewer"} ${more === 1 || more === -1 ? "compaction" : "compactions"}`;
  return [`Use ${what}: ${changeWords(change)}, ${compactions}`, ...doubts].join("; ") + ".";
}

/** How many recorded compactions the trigger gives in their places, and the others by name. */
function boundariesPart(answer, { model }) {
  const chains = answer.chains.filter((chain) => chain.model === model);
  const all = chains.flatMap((chain) => chain.compactions.map((each) => ({ ...each, chain: chain.chain })));
  const by = Map.groupBy(all, ({ verdict }) => verdict);
  const reproduced = by.get("reproduced") ?? [];
  const learned = reproduced.filter(({ trigger_source: source }) => source === "learned").length;
  const given = by.get("given")?.length ?? 0;
  const others = all.filter(({ verdict }) => verdict in REASONS);
  const missed = chains.flatMap((chain) => chain.not_compacted.map((each) => ({ ...each, chain: chain.chain })));
  const known = all.length - given;
  const isAll = reproduced.length === known ? "" : ` of ${exact(known)}`;
  const lines = [
    all.length === 0 ? "No compaction was recorded." : null,
    known > 0 ? `The recorded trigger gives ${exact(reproduced.length)}${isAll} ${known === 1 ? "compaction" : "compactions"} in ${reproduced.length === 1 ? "its place" : "their places"}.` : null,
    learned > 0 ? "~: nothing reports that trigger; it is the least size at which it was compacted." : null,
    given > 0 ? `${count(given, "compaction")} did not come by size (asked for, idle, or unknown), and ${given === 1 ? "stays" : "stay"} where ${given === 1 ? "it was" : "they were"}.` : null,
    ...others.slice(0, NAMED).map((each) => `${named(each)} is not reproduced: ${REASONS[each.verdict]} (at ${exact(each.size)}, trigger ${exact(each.trigger_tokens)}).`),
    ...missed.slice(0, NAMED).map(({ chain, at, size, trigger }) => `Not compacted before response ${exact(at + 1)}${chainOf(chain)}, although ${exact(size)} tokens had reached ${exact(trigger.tokens)}.`),
    others.length + missed.length > 2 * NAMED ? "More of these are in the API's answer." : null,
  ].filter(Boolean);
  return h("ul", { class: "what-if-lines small" }, ...lines.map((line) => h("li", {}, line)));
}

function named({ number, chain }) {
  return `Compaction #${exact(number)}${chainOf(chain)}`;
}

function chainOf(chain) {
  return chain === MAIN ? "" : ` of ${chain}`;
}

/** Records by the rule that they come from. */
function rulesPart({ rules }, index, name) {
  const changed = rules.filter(({ settings }) => settings.length > 0);
  const cells = (row) => [row.kind, row.rule ?? "", exact(row.recorded), exact(row.settings[index])];
  const table = h("table", { class: "figures" },
    h("thead", {}, h("tr", {}, ...["Records", "Rule", "Recorded", `At ${name}`].map((words) => h("th", { scope: "col" }, words)))),
    h("tbody", {}, ...changed.map((row) => h("tr", {}, ...cells(row).map((cell, at) => h(at ? "td" : "th", at ? {} : { scope: "row" }, cell))))));
  const el = h("details", { class: "data" }, h("summary", {}, "Records by rule"), scrolling("Records by rule", table, "whole"));
  shown(el, changed.length > 0);
  return el;
}

function dollars(usd) {
  return usd === null ? "price unknown" : amount(usd);
}

/** What calls cost: "at least" where the output of some is not reported. */
function costWords(totals, cache) {
  const words = dollars(totals[cache]);
  return totals[cache] !== null && totals.unreported > 0 ? `at least ${words}` : words;
}

function difference(usd) {
  const words = amount(usd);
  return Number(usd) > 0 ? words.replace("~", "~+") : words;
}

function bare(usd) {
  return difference(usd).replace("~", "");
}

function changeWords(change) {
  if (change === null) return "";
  const { amount: middle, low, high } = change;
  return low === high ? difference(middle) : `${difference(middle)} (${bare(low)} to ${bare(high)})`;
}

function signed(value, form) {
  return value > 0 ? `+${form(value)}` : form(value).replace("-", "−");
}

function waitWords({ compactions, untimed, wait_ms: waitMs }) {
  if (compactions === 0) return "";
  if (untimed === compactions) return UNKNOWN;
  return `${duration(waitMs)}${untimed ? ` and ${exact(untimed)} unknown` : ""}`;
}

function paidWords({ responses, known }) {
  if (known === 0) return "";
  return responses === null ? "never" : count(responses, "response");
}

function pinWords({ pins_kept: kept, pins }) {
  return pins ? `${exact(kept)} of ${exact(pins)}` : UNKNOWN;
}
