// A session's timeline: the documents of its compactions, the open attempt, and single records. Of
// a compaction's records only their places in the log are taken, and they are kept to be shown.

import { ZONE } from "./format.js";

const KIND = /^contextgauge\.([a-z_]+)\.v\d+$/;

/** The kind of a record in structured form: "context_reading" and so on. */
function kindOf(record) {
  return KIND.exec(record.type)?.[1] ?? record.type;
}

function timeOf(record) {
  return record.time === undefined || record.time === null ? null : Date.parse(record.time);
}

/** Kinds that are an item by themselves. Readings are the chart's, heartbeats the open attempt's. */
const SINGLE = new Set([
  "context_warning", "context_reset", "context_edit", "context_exhausted", "session_info",
  "context_limits",
]);

/** Of a compaction's records, those that say where it stands among the readings. */
const PLACING = new Set(["compaction_start", "compact_boundary", "compaction_failed"]);

/** Kinds that change a compaction's document. */
const DOCUMENTED = new Set(["compact_boundary", "compaction_timing", "compaction_summary", "compaction_complete", "pins_checked"]);

/** Kinds that belong to an attempt. */
const OF_ATTEMPTS = new Set([...PLACING, ...DOCUMENTED, "compaction_progress"]);

/** How many records changed documents of compactions. */
export function documentChanges(records) {
  return records.filter((record) => DOCUMENTED.has(kindOf(record))).length;
}

/** The items, the latest first: by time, and of equal times by their places in the log. */
export function timelineOf(records, documents, view) {
  const attempts = attemptsOf(records);
  const ended = documents.map((document) => completed(document, attempts));
  const keys = new Set(ended.map((item) => item.key));
  const others = [...attempts.values()].filter((attempt) => !keys.has(attempt.key));
  const open = view.attempt;
  if (open !== null && !keys.has(open.attempt_id) && !attempts.has(open.attempt_id)) {
    others.push({ ...newAttempt(open.attempt_id, open.chain), order: view.sequence, place: view.sequence });
  }
  const items = [...singlesOf(records), ...ended, ...others.map((attempt) => unfinished(attempt, view))];
  return byTime(items);
}

/** Sort items, the latest first. One without a time stays after the one before it in the log. */
function byTime(items) {
  items.sort((a, b) => a.order - b.order || (momentOf(a) ?? 0) - (momentOf(b) ?? 0));
  let before = -Infinity;
  const placed = items.map((item, place) => {
    before = momentOf(item) ?? before;
    return { item, place, at: before };
  });
  placed.sort((a, b) => (a.at === b.at ? b.place - a.place : b.at - a.at));
  return placed.map(({ item }) => item);
}

/** What the order of a timeline is, in words. */
export function orderWords(items) {
  const untimed = items.filter((item) => momentOf(item) === null).length;
  if (untimed === items.length) return "latest first, in the order of the log";
  const byTime = `latest first, by time (${ZONE})`;
  return untimed === 0 ? byTime : `${byTime}; entries without a time in the order of the log`;
}

/** The records that are items by themselves; `isRepeat`: limits that are equal to the former ones of the chain. */
function singlesOf(records) {
  const limits = new Map();
  return records.filter((record) => SINGLE.has(kindOf(record))).map((record) => {
    const { data } = record;
    const kind = kindOf(record);
    const sequence = Number(record.sequence);
    const item = {
      key: record.id, kind, order: sequence, place: sequence, chain: data.chain, time_ms: timeOf(record), data,
      records: [record], isRepeat: false,
    };
    if (kind === "context_limits") {
      const words = JSON.stringify([data.window, data.window_source, data.auto_compact_enabled, data.auto_compact_threshold]);
      item.isRepeat = limits.get(data.chain) === words;
      limits.set(data.chain, words);
    }
    return item;
  });
}

/** The attempts that records report, by their keys: their places, start, failure and records. */
function attemptsOf(records) {
  const attempts = new Map();
  const byBoundary = new Map();
  for (const record of records) {
    const kind = kindOf(record);
    if (!OF_ATTEMPTS.has(kind)) continue;
    const key = attemptKey(record, byBoundary);
    if (kind === "compact_boundary") byBoundary.set(record.id, key);
    if (!attempts.has(key)) attempts.set(key, newAttempt(key, record.data.chain));
    const attempt = attempts.get(key);
    const sequence = Number(record.sequence);
    attempt.records.push(record);
    attempt.order = Math.max(attempt.order, sequence);
    if (PLACING.has(kind)) attempt.place = sequence;
    if (kind === "compaction_start") attempt.start = record;
    if (kind === "compaction_failed") attempt.failure = record;
  }
  return attempts;
}

/** The attempt that a record belongs to: by its boundary, else its id, else that of what ended it. */
function attemptKey({ id, data }, byBoundary) {
  if (data.boundary_id !== undefined) return byBoundary.get(data.boundary_id) ?? data.boundary_id;
  return data.attempt_id ?? id;
}

function completed(document, attempts) {
  const { attempt_id: attemptId, boundary_id: boundaryId, chain, time_ms: endedMs } = document;
  const key = attempts.has(boundaryId) ? boundaryId : attemptId ?? boundaryId;
  const { start, ...places } = attempts.get(key) ?? newAttempt(key, chain);
  return {
    ...places, kind: "compaction", status: "done", attempt_id: attemptId, document, ended_ms: endedMs,
    started_ms: start === null ? null : timeOf(start),
  };
}

function newAttempt(key, chain) {
  return { key, chain, order: 0, place: 0, start: null, failure: null, records: [] };
}

/** An attempt that has no boundary: it failed, or runs, or how it ended is unknown. */
function unfinished({ start, failure, ...places }, view) {
  const open = view.attempt?.attempt_id === places.key ? view.attempt : null;
  const item = {
    ...places, kind: "compaction", attempt_id: places.key, ended_ms: null,
    started_ms: start === null ? open?.started_ms ?? null : timeOf(start),
    trigger_reason: start?.data.trigger_reason ?? open?.trigger_reason ?? null,
    used_percent: start?.data.context_used_percent ?? open?.used_percent ?? null,
    used_tokens: start?.data.used_tokens ?? open?.used_tokens ?? null,
  };
  if (failure !== null) return { ...item, status: "failed", failure: failure.data, ended_ms: timeOf(failure) };
  // A view that is of before the attempt does not know it yet.
  return { ...item, status: open !== null || view.sequence < item.order ? "running" : "lost" };
}

/** Kinds that end a row of steps: what lies before and after them is of another part of the session. */
const MILESTONES = new Set(["compaction", "context_reset", "context_warning"]);

/**
 * The items with steps folded: those between two milestones are one item, {kind: "steps", steps},
 * at the place of the latest. One that is alone stays as it is.
 */
export function withFolds(items, isStep) {
  const rows = [];
  let steps = null;
  for (const item of items) {
    if (!isStep(item)) {
      if (MILESTONES.has(item.kind)) steps = null;
      rows.push([item]);
    } else if (steps === null) {
      steps = [item];
      rows.push(steps);
    } else {
      steps.push(item);
    }
  }
  return rows.map((row) => (row.length === 1 ? row[0] : {
    key: `steps ${row.at(-1).key}`, kind: "steps", steps: row,
    time_ms: row.map((item) => item.time_ms).find((time) => time !== null) ?? null,
  }));
}

/** When an item was: a compaction's end, else its start. */
export function momentOf(item) {
  return item.kind === "compaction" ? item.ended_ms ?? item.started_ms : item.time_ms;
}

/** A reading in structured form as a point: its data, sequence and time. */
export function pointOf(record) {
  return { ...record.data, sequence: Number(record.sequence), time_ms: timeOf(record) };
}
