// Asks the server. Addresses are relative: the page works below any path.

const TOKEN_KEY = "contextgauge-token";
/** The Date header counts whole seconds: a smaller difference is no difference. */
const CLOCK_TOLERANCE_MS = 2_000;
const TIMEOUT_MS = 20_000;

/** An answer that is an error, by RFC 9457. `status` 0: there was no answer. */
export class ApiError extends Error {
  constructor(status, title, detail, retryAfterS = null, type = "") {
    super(detail || title);
    this.status = status;
    this.title = title;
    this.detail = detail;
    this.retryAfterS = retryAfterS;
    this.type = type;
  }
}

let token = readToken();
let clockOffsetMs = 0;
const listeners = { unauthorized: () => {}, reached: () => {}, unreached: () => {}, read: () => {}, unread: () => {} };

export function onServer(handlers) {
  Object.assign(listeners, handlers);
}

/** The time by the server's clock, ms: views' times are compared with it. */
export function now() {
  return Date.now() + clockOffsetMs;
}

/** Take a token out of the address, where it must not stay, and keep it for this tab. */
export function takeToken() {
  const match = /[#&]token=([^&]+)/.exec(location.hash);
  if (match === null) return;
  setToken(decoded(match[1]));
  const rest = location.hash.replace(/&?token=[^&]+/, "").replace(/^#&?/, "");
  history.replaceState(null, "", rest ? `#${rest}` : "#/");
}

/** Part of an address as it is meant; as it stands where it is no encoding. */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function setToken(value) {
  token = value;
  try {
    sessionStorage.setItem(TOKEN_KEY, value);
  } catch {
    // storage may be forbidden: the token then lasts until the reload
  }
}

function readToken() {
  try {
    return sessionStorage.getItem(TOKEN_KEY);
  } catch {
    return null;
  }
}

/** Return the JSON of an answer. Raises ApiError for no answer and for an error, AbortError if ended. */
export async function get(path, { signal, cache = "default" } = {}) {
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  let response;
  try {
    response = await answer(path, signal ? AbortSignal.any([signal, limit]) : limit, {}, signal, cache);
    listeners.read();
  } catch (error) {
    // Reached, but without figures: their store is away, or the server has too much to do.
    if (error.status === 429 || error.status >= 500) listeners.unread(error);
    else if (error.status >= 400 && error.status !== 401) listeners.read();
    throw error;
  }
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "No answer", "The answer ended in the middle.");
  }
}

/** Fetch with the token an answer without an end: no time limit but the caller's. */
export async function stream(path, { signal, headers = {} }) {
  return answer(path, signal, headers, signal, "no-store");
}

async function answer(path, signal, headers, ended, cache) {
  const sent = { ...headers };
  const used = token;
  if (used !== null) sent.Authorization = `Bearer ${used}`;
  let response;
  try {
    response = await fetch(path, { headers: sent, signal, credentials: "same-origin", cache });
  } catch (error) {
    if (ended?.aborted) throw error;
    listeners.unreached();
    throw new ApiError(0, "No answer", "The server does not answer.");
  }
  listeners.reached();
  noteClock(response.headers.get("date"));
  if (response.ok) return response;
  const problem = await problemOf(response);
  // A token entered meanwhile is not the one that was refused.
  if (response.status === 401 && used === token) listeners.unauthorized(used === null ? null : problem);
  throw problem;
}

async function problemOf(response) {
  const retry = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // a page of a proxy: only its status is known
  }
  return new ApiError(
    response.status,
    problem.title ?? `HTTP ${response.status}`,
    problem.detail ?? "",
    Number.isNaN(retry) ? null : retry,
    problem.type,
  );
}

function noteClock(date) {
  const serverMs = Date.parse(date ?? "");
  if (Number.isNaN(serverMs)) return;
  const offset = serverMs + 500 - Date.now();
  clockOffsetMs = Math.abs(offset) > CLOCK_TOLERANCE_MS ? offset : 0;
}

/** `query({limit: 5, q: ""})` → "?limit=5": what is empty is left out. */
export function query(parameters) {
  const given = Object.entries(parameters).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** Where the server has a session, by its `address`: its encoded id, or a hash of one that is none. */
export function sessionPath(address, rest = "") {
  return `v1/sessions/${address}${rest}`;
}
