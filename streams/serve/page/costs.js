// What a session cost, and what a compaction cost and saved. Amounts come from list prices, so each
// has a ~; what is not known is said, and is never 0.

import { get, sessionPath } from "./api.js";
import { count, exact, UNKNOWN } from "./format.js";

/** Costs are summed over all readings that are stored: not with each one that comes. */
const EVERY_MS = 15_000;
const UNPRICED = "price unknown";

/** Reads a session's costs now and then: `read(changes)` gives the latest, null until there are some. */
export class Costs {
  constructor(address, signal) {
    this.address = address;
    this.signal = signal;
    this.latest = null;
    this.readAt = null;
    this.changes = null;
  }

  /** `changes` says what compactions there are: after a new one the costs are read at once. */
  async read(changes) {
    if (this.readAt !== null && changes === this.changes && performance.now() - this.readAt < EVERY_MS) return this.latest;
    const { costs } = await get(sessionPath(this.address, "/costs"), { signal: this.signal });
    Object.assign(this, { latest: costs, readAt: performance.now(), changes });
    return costs;
  }

  /** The figures of a compaction, by its boundary's id; null where there are none. */
  of(boundaryId) {
    return this.latest?.compactions.find((each) => each.boundary_id === boundaryId) ?? null;
  }
}

/** An amount: "~$12.24", "at least ~$0.067", "price unknown". */
export function money({ usd, is_complete: isComplete }) {
  if (usd === null) return UNPRICED;
  return isComplete ? amount(usd) : `at least ${amount(usd)}`;
}

/** Dollars with cents; below a dollar with two digits that count. */
export function amount(usd) {
  const size = Math.abs(Number(usd));
  const options = size >= 1 || size === 0
    ? { minimumFractionDigits: size && 2, maximumFractionDigits: 2 }
    : { minimumSignificantDigits: 2, maximumSignificantDigits: 2 };
  return `~${Number(usd) < 0 ? "−" : ""}$${size.toLocaleString("en-US", options)}`;
}

/** What a session cost, and how many of its calls are not in it. */
export function sessionCostWords({ cost, models, is_whole: isWhole }) {
  if (models.length === 0) return UNKNOWN;
  const unpriced = models.reduce((sum, each) => sum + each.unpriced, 0);
  const parts = [
    money(cost),
    cost.usd !== null && unpriced > 0 ? `${count(unpriced, "call")} unpriced` : null,
    isWhole ? null : "the latest responses only",
  ];
  return parts.filter(Boolean).join(" · ");
}

/** What is added to a receipt's figure of tokens: their cost. */
export function withMoney(words, cost) {
  return cost === undefined || words === UNKNOWN ? words : `${words}: ${money(cost)}`;
}

/** What a compaction saved, and whether that paid for it: pairs for its receipt. */
export function profitFacts(profit) {
  if (profit === null) return [];
  const { saving, net, responses, break_even_responses: breakEven, summary, cache_share_before: before, cache_share_after: after } = profit;
  const saved = saving.usd !== null ? `${amount(saving.usd)} a response, ${count(responses, "response")} since`
    : profit.tokens_saved === null ? UNKNOWN : UNPRICED;
  const atLeast = net.is_complete ? "" : "at least ";
  return [
    ["Read from the cache", before === null || after === null ? UNKNOWN : `${share(before)} before, ${share(after)} after`],
    ["Saves", saved],
    ["Pays for itself after", breakEven === null ? UNKNOWN : `${atLeast}${count(breakEven, "response")}`],
    ["Net", net.usd === null ? UNKNOWN : netWords(net, summary)],
  ];
}

function netWords(net, summary) {
  if (summary.usd === null) return `${amount(net.usd)} without the summary`;
  return net.is_complete ? amount(net.usd) : `at most ${amount(net.usd)}`;
}

function share(part) {
  return `${exact(Math.round(100 * part))}%`;
}
