// The live feed: server-sent events read by fetch, since EventSource cannot send a token.

import { ApiError, query, stream } from "./api.js";

/** The server sends a comment every few seconds: after so long without a byte it is gone. */
const SILENCE_MS = 45_000;
const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 10_000;
/** A server that is away may be back in a moment, and asking costs it nothing until then. */
const LONGEST_AWAY_MS = 3_000;

/** The fields of a server-sent event; "" has a comment. Lines end with LF only: a session id may hold U+2028. */
function fieldsOf(block) {
  return Object.fromEntries(block.split("\n").map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
  }));
}

/**
 * Follows the feed until it is stopped, over any number of connections: the last event's id
 * resumes it. `lastId`: of the answer that it goes on from. `onEntries(entries)`, `onReset(reason)`: all must be read again; `onState(state)`:
 * "connecting", "live", "waiting".
 */
export class Feed {
  #stop = new AbortController();
  #wake = () => {};
  #lastId = null;
  #firstWait = FIRST_WAIT_MS;
  #wait = FIRST_WAIT_MS;
  #isCutOff = false;

  constructor({ session = null, lastId = null, onEntries, onReset, onState }) {
    this.session = session;
    this.#lastId = lastId;
    this.onEntries = onEntries;
    this.onReset = onReset;
    this.onState = onState;
    this.#run();
  }

  stop() {
    this.#stop.abort();
    this.#wake();
  }

  /** Try again now, if it waits. */
  hurry() {
    this.#wake();
  }

  async #run() {
    while (!this.#stop.signal.aborted) {
      let least = 0;
      let most = LONGEST_WAIT_MS;
      this.onState("connecting");
      try {
        await this.#connect();
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        if (error instanceof ApiError) {
          least = (error.retryAfterS ?? 0) * 1000;
          if (error.status === 0) most = LONGEST_AWAY_MS;
          if (error.status === 401 || error.status === 404) least = LONGEST_WAIT_MS;
          if (error.status === 400 && this.#lastId !== null) {
            this.#lastId = null; // of a feed that is no more: Redis was emptied, or is another one
            this.onReset("");
          }
        }
      }
      if (this.#stop.signal.aborted) return;
      this.onState("waiting");
      if (this.#isCutOff) least = Math.max(least, this.#firstWait); // too slow, or the store is away
      this.#isCutOff = false;
      // Spread, so that a thousand pages do not come back in the same moment.
      await this.#sleep(Math.max(least, Math.min(this.#wait, most) * (0.75 + Math.random() / 2)));
      this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT_MS);
    }
  }

  async #connect() {
    const connection = new AbortController();
    const signal = AbortSignal.any([this.#stop.signal, connection.signal]);
    const end = () => connection.abort();
    let timer = setTimeout(end, SILENCE_MS);
    try {
      const headers = { Accept: "text/event-stream" };
      if (this.#lastId !== null) headers["Last-Event-ID"] = this.#lastId;
      const path = `v1/stream${query({ session: this.session })}`;
      const response = await stream(path, { signal, headers });
      this.onState("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(end, SILENCE_MS);
        // A CR only ends a line: JSON writes others as escapes.
        const blocks = (rest + value.replaceAll("\r", "")).split("\n\n");
        rest = blocks.pop(); // not complete yet
        this.#take(blocks.map(fieldsOf));
      }
    } finally {
      clearTimeout(timer);
      end();
    }
  }

  #take(events) {
    let entries = [];
    let isAtWork = false; // being let in is no sign of it
    for (const { event, data, id, retry, "": heartbeat } of events) {
      if (id !== undefined) this.#lastId = id;
      if (retry !== undefined) this.#firstWait = Math.min(Number(retry), LONGEST_WAIT_MS);
      if (heartbeat !== undefined || event === "record") isAtWork = true;
      if (event === "record") {
        entries.push(JSON.parse(data));
      } else if (event === "reset") {
        entries = []; // what is read again has them
        this.onReset(data);
      } else if (event === "cut_off") {
        this.#isCutOff = true;
      }
    }
    if (isAtWork) this.#wait = this.#firstWait;
    if (entries.length) this.onEntries(entries);
  }

  #sleep(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
