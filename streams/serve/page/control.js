// What the control plane knows of a session: its latest decision and command, and where the service compacts it.

import { get, now, sessionPath } from "./api.js";
import { factList, h, shown } from "./dom.js";
import { errorWords, moment, tokens } from "./format.js";
import { leadingChain, MAIN, untilOf } from "./status.js";

/** Why a compaction was requested, or was not, in short; docs/CONTROL.md has the whole. */
const REASONS = {
  above_threshold: "the size reached its threshold",
  model_change: "the model or its window changed",
  hard_limit: "the size reached the hard limit",
  default_window: "its window is assumed",
  unknown_window: "its window is unknown",
  record_too_old: "the reading was too old",
  no_driver: "its runtime compacts itself, and no driver is named",
  command_open: "a compaction is requested already",
  pause_after_failure: "the pause after a failure is not over",
  awaiting_effect: "the effect of the last one is not known yet",
  no_progress: "two compactions in a row did not help",
  no_effect: "the agent does not follow the compacted context",
};

/** Reasons for which the service does not compact a session, whatever its size. */
const NEVER = new Set(["default_window", "unknown_window", "no_driver", "no_progress", "no_effect"]);

/** A command's state, or its outcome, in words. */
const COMMANDS = { requested: "waiting", accepted: "under way", planned: "under way", called: "under way", nothing_to_compact: "nothing to compact" };

/** Servers without a control plane, such as `contextgauge view`, are asked once. */
let isAbsent = false;

/** Read it; null where there is nothing, or where it cannot be read now. */
export async function readControl(address, signal) {
  if (isAbsent) return null;
  try {
    return await get(sessionPath(address, "/control"), { signal });
  } catch (error) {
    isAbsent = error.type?.endsWith("no-control") ?? false;
    return null;
  }
}

/** Let the service's threshold be the next compaction's, unless a lower one is known for certain. */
export function withService(view, answer) {
  const chain = leadingChain(view);
  view.status.until_compaction = { ...(view.status.own_until ??= view.status.until_compaction) };
  if (!answer?.worker.is_working) return;
  const decision = answer.control.decisions.at(-1);
  const at = decision?.threshold_tokens ?? null;
  if (at === null || chain.chain !== MAIN || NEVER.has(decision.reason) || decision.window !== chain.window) return;
  if (answer.control.thresholds?.automatic === false) return;
  const until = untilOf(view, chain);
  if (until !== null && !until.estimated && until.threshold_tokens <= at) return;
  const left = chain.used_tokens === null ? null : at - chain.used_tokens;
  const responses = left === null || !chain.growth_tokens ? null : Math.floor(left / chain.growth_tokens);
  view.status.until_compaction[MAIN] = { tokens: left, responses, threshold_tokens: at, source: "service", estimated: false, setting: null };
}

function decisionWords(decision) {
  const size = decision.used_tokens === null ? "" : ` at ${tokens(decision.used_tokens)}`;
  const what = decision.reason === "no_effect" ? "Undone" : decision.fired ? "Requested" : "Not compacted";
  return `${what}${size}: ${REASONS[decision.reason] ?? errorWords(decision.reason)} · ${moment(decision.time_ms, now())}`;
}

function commandWords(command) {
  const state = command.outcome ?? command.state;
  const who = command.trigger === "manual" ? `asked for by ${command.requested_by}` : "automatic";
  const why = command.reason === null ? "" : `: ${command.reason}`;
  return `${COMMANDS[state] ?? state}${why} · ${who} · ${moment(command.finished_ms ?? command.requested_ms, now())}`;
}

/** The section: {el, set(answer)}; hidden where the control plane knows nothing of the session. */
export function controlPart() {
  const facts = factList();
  const el = h("section", { class: "card", "aria-labelledby": "control-title", hidden: true }, h("h2", { id: "control-title" }, "Compaction service"), facts.el);
  const set = (answer) => {
    const { decisions = [], commands = [] } = answer?.control ?? {};
    const pairs = [];
    if (decisions.length) pairs.push(["Latest decision", decisionWords(decisions.at(-1))]);
    if (commands.length) pairs.push(["Latest command", commandWords(commands.at(-1))]);
    if (pairs.length && !answer.worker.is_working) pairs.push(["Control worker", "none has reported lately"]);
    shown(el, pairs.length > 0);
    facts.set(pairs);
  };
  return { el, set };
}
