// A session's timeline: the documents of its compactions, the open attempt, and single records. Of
// a compaction's records only their places in the log are taken, and they are kept to be shown.

const KIND = /^contextgauge\.([a-z_]+)\.v\d+$/;

/** The kind of a record in structured form: "context_reading" and so on. */
export function kindOf(record) {
  return KIND.exec(record.type)?.[1] ?? record.type;
}

export function timeOf(record) {
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
const DOCUMENTED = new Set(["compact_boundary", "compaction_timing", "compaction_summary", "compaction_complete"]);

export class Timeline {
  constructor() {
    this.singles = new Map();
    this.attempts = new Map();
    this.byBoundary = new Map();
    this.documents = [];
    this.seen = new Set();
    this.limits = new Map();
  }

  /** Take records; returns whether documents of compactions changed with them. */
  add(records) {
    let isChanged = false;
    for (const record of records) {
      if (this.seen.has(record.id)) continue;
      this.seen.add(record.id);
      const kind = kindOf(record);
      isChanged ||= DOCUMENTED.has(kind);
      if (SINGLE.has(kind)) this.#addSingle(record, kind);
      else this.#addToAttempt(record, kind);
    }
    return isChanged;
  }

  /** The items, the newest first. Of equal places the later one in time comes first. */
  list(view) {
    const ended = this.documents.map((document) => this.#completed(document));
    const keys = new Set(ended.map((item) => item.key));
    const others = [...this.attempts.values()].filter((attempt) => !keys.has(attempt.key));
    const open = view.attempt;
    if (open !== null && !keys.has(open.attempt_id) && !this.attempts.has(open.attempt_id)) {
      others.push({ ...newAttempt(open.attempt_id, open.chain), order: view.sequence, place: view.sequence });
    }
    const items = [...this.singles.values(), ...ended, ...others.map((attempt) => unfinished(attempt, view))];
    return items.sort((a, b) => b.order - a.order || (momentOf(b) ?? 0) - (momentOf(a) ?? 0));
  }

  #addSingle(record, kind) {
    const { data } = record;
    const sequence = Number(record.sequence);
    this.singles.set(record.id, {
      key: record.id, kind, order: sequence, place: sequence, chain: data.chain, time_ms: timeOf(record), data,
      records: [record], isRepeat: kind === "context_limits" && this.#isRepeat(data),
    });
  }

  /** Whether limits are equal to the former ones of the chain. */
  #isRepeat({ chain, window, window_source, auto_compact_enabled, auto_compact_threshold }) {
    const limits = JSON.stringify([window, window_source, auto_compact_enabled, auto_compact_threshold]);
    const isRepeat = this.limits.get(chain) === limits;
    this.limits.set(chain, limits);
    return isRepeat;
  }

  #addToAttempt(record, kind) {
    const attempt = this.#attemptOf(record, kind);
    if (attempt === null) return;
    const sequence = Number(record.sequence);
    attempt.records.push(record);
    attempt.order = Math.max(attempt.order, sequence);
    if (PLACING.has(kind)) attempt.place = sequence;
    if (kind === "compaction_start") attempt.start = record;
    if (kind === "compaction_failed") attempt.failure = record;
  }

  #attemptOf(record, kind) {
    const { data } = record;
    switch (kind) {
      case "compaction_start":
      case "compaction_progress":
        return this.#attempt(data.attempt_id, data.chain);
      case "compaction_failed":
        return this.#attempt(data.attempt_id ?? record.id, data.chain);
      case "compact_boundary":
        this.byBoundary.set(record.id, data.attempt_id ?? record.id);
        return this.#attempt(data.attempt_id ?? record.id, data.chain);
      case "compaction_timing":
      case "compaction_summary":
      case "compaction_complete":
        return this.#attempt(this.byBoundary.get(data.boundary_id) ?? data.boundary_id, data.chain);
      default:
        return null;
    }
  }

  #attempt(key, chain) {
    let attempt = this.attempts.get(key);
    if (attempt === undefined) {
      attempt = newAttempt(key, chain);
      this.attempts.set(key, attempt);
    }
    return attempt;
  }

  #completed(document) {
    const { attempt_id: attemptId, boundary_id: boundaryId, chain, time_ms: endedMs } = document;
    const key = this.attempts.has(boundaryId) ? boundaryId : attemptId ?? boundaryId;
    const { start, ...places } = this.attempts.get(key) ?? newAttempt(key, chain);
    return {
      ...places, kind: "compaction", status: "done", attempt_id: attemptId, document, ended_ms: endedMs,
      started_ms: start === null ? null : timeOf(start),
    };
  }
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

/** When an item was: a compaction's end, else its start. */
export function momentOf(item) {
  return item.kind === "compaction" ? item.ended_ms ?? item.started_ms : item.time_ms;
}

/** The latest time of an item's records: a compaction's may be later than the time it is shown with. */
function latestOf(item) {
  const times = [momentOf(item), ...item.records?.map(timeOf) ?? []].filter((time) => time !== null);
  return times.length ? Math.max(...times) : null;
}

/** Whether times go back in a list with the newest first: the log's order is not that of time. */
export function goesBack(items) {
  let after = null;
  for (const item of items) {
    const time = momentOf(item);
    if (time === null) continue;
    if (after !== null && time > after) return true;
    after = latestOf(item);
  }
  return false;
}

/** Readings in structured form as points: {chain, time_ms, used, percent, window, …}. */
export function pointOf(record) {
  const { data } = record;
  return {
    sequence: Number(record.sequence), time_ms: timeOf(record), chain: data.chain,
    used: data.used_tokens, percent: data.used_percent, window: data.window,
    input: data.input_tokens, written: data.cache_creation_tokens, read: data.cache_read_tokens,
    model: data.model, subagent_type: data.subagent_type, messages: data.messages,
  };
}
