// The server, by `Protocol/http.yaml`.

/// What the server refused, or why it could not be asked.
class Problem extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.name = "Problem";
    this.status = status;
    this.code = code;
  }
}

const tokenName = "larder-token";

/// The token that proves who the user is; empty for none. It ends with the tab.
export const token = {
  get: () => sessionStorage.getItem(tokenName) ?? "",
  set: (text) => (text ? sessionStorage.setItem(tokenName, text) : sessionStorage.removeItem(tokenName)),
};

let whenUnauthorized = () => {};

/// Sets what happens when the server doesn't know the user, for a reason if the user has tried to prove who it is.
export function onUnauthorized(action) {
  whenUnauthorized = action;
}

/// Sends a request, and returns a response that is not a problem.
/// - path: Below `/v1/`.
export async function request(method, path, { headers = {}, body, signal, query } = {}) {
  const parameters = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  const url = new URL(`v1/${path}`, document.baseURI.replace(/#.*/, ""));
  url.search = new URLSearchParams(parameters).toString();
  const all = { ...headers };
  if (method !== "GET" && method !== "HEAD") all["X-Larder"] = "1";
  if (token.get()) all.Authorization = `Bearer ${token.get()}`;
  let response;
  try {
    response = await fetch(url, { method, headers: all, body, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "The server doesn't respond. Is it running, and is this page from it?");
  }
  if (response.ok) return response;
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // Not from Larder: a proxy, for example.
  }
  // 429 with this code is about other wrong tokens, before this one.
  if (response.status === 401 || (response.status === 429 && problem.code === "notPermitted")) {
    whenUnauthorized(token.get() || path === "session" ? problem.detail : undefined);
    token.set("");
  }
  const detail = problem.detail ?? `The server responds with status ${response.status}.`;
  throw new Problem(response.status, problem.code ?? "", detail);
}

export async function get(path, query, signal) {
  return (await request("GET", path, { query, signal })).json();
}

export async function send(method, path, value, options = {}) {
  const headers = { "Content-Type": "application/json", ...options.headers };
  const response = await request(method, path, { ...options, headers, body: JSON.stringify(value) });
  return response.status === 204 ? null : response.json();
}

/// Sends JSON whose numbers must stay as they are written.
export async function sendText(path, text, options = {}) {
  const headers = { "Content-Type": "application/json", ...options.headers };
  return request("POST", path, { ...options, headers, body: text });
}

/// Yields the lines of a response while they arrive.
export async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (true) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const line of parts) if (line) yield line;
  }
  if (rest) yield rest;
}

export const storePath = (store, ...rest) => ["stores", encodeURIComponent(store), ...rest].join("/");

/// Sends a request about an entry. Its key is never a part of the path, which a proxy may change on the way.
const requestEntry = (method, store, key, options) =>
  request(method, storePath(store, "entry"), { ...options, query: { key } });

/// What is known of an entry without its value.
function facts(response) {
  const expiry = response.headers.get("Larder-Expires-In");
  return {
    revision: (response.headers.get("ETag") ?? "").replaceAll('"', ""),
    expiresIn: expiry === null ? null : Number(expiry),
    isList: response.headers.get("Larder-Kind") === "list",
  };
}

/// Reads a part of a value.
/// - Returns: The bytes with `start` and `size`, the size of the whole value, and what is known of the entry.
export async function readValue(store, key, start, count, signal) {
  let response;
  try {
    const range = count === undefined ? `bytes=${start}-` : `bytes=${start}-${start + count - 1}`;
    response = await requestEntry("GET", store, key, { headers: { Range: range }, signal });
  } catch (error) {
    // An empty value has no ranges, and neither has a list.
    if (error.status !== 416 && error.code !== "illegalArgument") throw error;
    response = await requestEntry("GET", store, key, { signal });
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  const range = /\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "");
  return { ...facts(response), bytes, start: range ? start : 0, size: range ? Number(range[1]) : bytes.length };
}

/// Writes an entry.
/// - condition: `{revision}`, `{absent: true}`, or empty.
/// - Returns: The revision.
export async function writeValue(store, key, body, { expiresIn, condition = {} } = {}) {
  const headers = { "Content-Type": "application/octet-stream" };
  if (expiresIn) headers["Larder-Expires-In"] = String(expiresIn);
  if (condition.revision) headers["If-Match"] = `"${condition.revision}"`;
  if (condition.absent) headers["If-None-Match"] = "*";
  const response = await requestEntry("PUT", store, key, { headers, body });
  return facts(response).revision;
}

export async function deleteEntry(store, key, revision) {
  await requestEntry("DELETE", store, key, { headers: revision ? { "If-Match": `"${revision}"` } : {} });
}

/// Yields all entries below a prefix, in pages.
export async function* pages(store, prefix, { values = false, limit = 1000, signal } = {}) {
  let after;
  while (true) {
    const { entries } = await get(storePath(store, "entries"), { prefix, after, limit, values: values ? 1 : 0 }, signal);
    if (entries.length > 0) yield entries;
    if (entries.length < limit) return;
    after = entries.at(-1).key;
  }
}
