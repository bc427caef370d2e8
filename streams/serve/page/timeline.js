// A session's records folded into the timeline's items. A compaction is one item from its start
// to its end, whatever records tell of it, and in whatever part they are still kept.

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

export class Timeline {
  constructor() {
    this.items = new Map();
    this.byBoundary = new Map();
    this.seen = new Set();
    this.limits = new Map();
  }

  /** Fold records in; those already known change nothing. */
  add(records) {
    for (const record of records) {
      if (this.seen.has(record.id)) continue;
      this.seen.add(record.id);
      this.#fold(record, kindOf(record), Number(record.sequence));
    }
  }

  /** Complete the compactions with whole documents: those of old records are kept longer. */
  complete(documents) {
    for (const told of documents) {
      const item = this.#compaction(told.attempt_id, told.boundary_id, told.chain);
      item.order = Math.max(item.order, 0);
      Object.assign(item, {
        status: "done", number: told.number, trigger: told.trigger, ended_ms: told.time_ms,
        before: told.tokens_before, before_source: told.tokens_before_source,
        post_tokens: told.post_tokens, after: told.tokens_after, saved: told.tokens_saved,
        duration_ms: told.duration_ms, duration_source: told.duration_source,
        messages: told.messages_since_last, is_complete: told.complete,
      });
      item.summary = told.summary ?? item.summary;
    }
  }

  /** The items, the newest first. Of equal places the later chain position wins by its time. */
  list() {
    return [...this.items.values()].sort(
      (a, b) => b.order - a.order || (momentOf(b) ?? 0) - (momentOf(a) ?? 0),
    );
  }

  #fold(record, kind, sequence) {
    const { data } = record;
    const time_ms = timeOf(record);
    if (SINGLE.has(kind)) {
      this.items.set(record.id, {
        key: record.id, kind, order: sequence, place: sequence, chain: data.chain, time_ms, data,
        records: [record], isRepeat: kind === "context_limits" && this.#isRepeat(data),
      });
      return;
    }
    const item = this.#of(kind, record, data);
    if (item === null) return;
    item.records.push(record);
    item.order = Math.max(item.order, sequence);
    if (PLACING.has(kind)) item.place = sequence;
    this.#apply(item, kind, data, time_ms);
  }

  /** Tell whether limits are those that the chain was last told to have. */
  #isRepeat({ chain, window, window_source, auto_compact_enabled, auto_compact_threshold }) {
    const told = JSON.stringify([window, window_source, auto_compact_enabled, auto_compact_threshold]);
    const isRepeat = this.limits.get(chain) === told;
    this.limits.set(chain, told);
    return isRepeat;
  }

  #of(kind, record, data) {
    switch (kind) {
      case "compaction_start":
      case "compaction_progress":
        return this.#compaction(data.attempt_id, null, data.chain);
      case "compact_boundary":
        return this.#compaction(data.attempt_id, record.id, data.chain);
      case "compaction_summary":
      case "compaction_complete":
        return this.#compaction(null, data.boundary_id, data.chain);
      case "compaction_failed":
        return this.#compaction(data.attempt_id, data.attempt_id === null ? record.id : null, data.chain);
      default:
        return null;
    }
  }

  #compaction(attemptId, boundaryId, chain) {
    const known = boundaryId === null ? undefined : this.byBoundary.get(boundaryId);
    const key = known ?? attemptId ?? boundaryId;
    if (boundaryId !== null) this.byBoundary.set(boundaryId, key);
    let item = this.items.get(key);
    if (item === undefined) {
      item = {
        key, kind: "compaction", chain, order: 0, place: 0, status: "running", records: [],
        attempt_id: attemptId, started_ms: null, ended_ms: null, trigger_reason: null,
        used_percent: null, used_tokens: null, number: null, trigger: null, before: null,
        before_source: null, post_tokens: null, after: null, saved: null, duration_ms: null,
        duration_source: null, messages: null, is_complete: false, summary: null, outcome: null,
        error: null,
      };
      this.items.set(key, item);
    }
    return item;
  }

  #apply(item, kind, data, time_ms) {
    switch (kind) {
      case "compaction_start":
        item.started_ms = time_ms;
        item.trigger_reason = data.trigger_reason;
        item.used_percent = data.context_used_percent;
        item.used_tokens = data.used_tokens;
        break;
      case "compact_boundary":
        Object.assign(item, {
          status: "done", number: data.number, trigger: data.trigger, ended_ms: time_ms,
          before: data.pre_tokens, before_source: data.pre_tokens_source,
          post_tokens: data.post_tokens, duration_ms: data.duration_ms,
          duration_source: data.duration_source, messages: data.messages_since_last,
        });
        break;
      case "compaction_summary":
        item.status = "done";
        item.summary = data.summary;
        break;
      case "compaction_complete":
        Object.assign(item, {
          status: "done", before: item.before ?? data.tokens_before, after: data.tokens_after,
          saved: data.tokens_saved, is_complete: true, trigger: item.trigger ?? data.trigger,
          duration_ms: item.duration_ms ?? data.duration_ms, ended_ms: item.ended_ms ?? time_ms,
        });
        break;
      case "compaction_failed":
        Object.assign(item, {
          status: "failed", outcome: data.outcome, error: data.error, ended_ms: time_ms,
          duration_ms: data.duration_ms,
        });
        break;
      default:
    }
  }
}

/** When an item was: a compaction's end, else its start. */
export function momentOf(item) {
  return item.kind === "compaction" ? item.ended_ms ?? item.started_ms : item.time_ms;
}

/** The latest time that an item's records tell: a compaction's may go on after the time it is shown with. */
function latestOf(item) {
  const times = [momentOf(item), ...item.records?.map(timeOf) ?? []].filter((time) => time !== null);
  return times.length ? Math.max(...times) : null;
}

/** Tell whether times go back in a list that has the newest first: the log's order is not that of time. */
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
