// The line in the bar: what goes on, or why there is nothing to see.

import { byId } from "./dom.js";

/** Say something in the bar: what is shown is not up to date, or why not. */
export function tell(message, bad = false) {
  const live = byId("live");
  live.className = bad ? "bad" : "";
  if (live.textContent !== message) live.textContent = message;
}

/** Show why there is nothing to see. */
export function failed(error) {
  if (error.name === "AbortError") return;
  console.warn(error.message);
  tell(error.message, true);
}
