// What the page asks the server for. Only ever this server, and only to read.

/** What the server refuses, with the place in the filter where it has one. */
export class Refused extends Error {
  constructor(message, status, place) {
    super(message);
    this.status = status;
    this.place = place ?? null;
  }
}

const tags = new Map(); // address -> the tag of its last answer

/**
 * Ask for JSON.
 * @param path below /api
 * @param parameters of the address; absent ones are left out
 * @param poll when true, `null` is returned where nothing changed since the last time
 */
export async function ask(path, parameters = {}, { poll = false, signal } = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given).toString();
  const address = `/api${path}${query ? `?${query}` : ""}`;
  const headers = poll && tags.has(address) ? { "if-none-match": tags.get(address) } : {};
  let response;
  try {
    response = await fetch(address, { headers, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The viewer does not answer: it was stopped. Start `ahalab view` again.", 0);
  }
  if (response.status === 304) return null;
  if (!response.headers.get("content-type")?.startsWith("application/json")) {
    throw new Refused((await response.text()).trim().slice(0, 300) || `HTTP ${response.status}`, response.status);
  }
  const found = await response.json();
  if (!response.ok) throw new Refused(found.error, response.status, found.place);
  if (poll) tags.set(address, response.headers.get("etag"));
  return found;
}

/** Do something now and every so often, while the page is seen; errors go to `onerror`. */
export function every(milliseconds, work, onerror) {
  let timer = 0;
  const turn = async () => {
    clearTimeout(timer);
    try {
      if (!document.hidden) await work();
    } catch (error) {
      onerror(error);
    }
    timer = setTimeout(turn, milliseconds);
  };
  document.addEventListener("visibilitychange", () => !document.hidden && turn());
  return turn();
}
