// The state of a page stands in its address, so that a reload, a bookmark or "back" gives the same.

/** Which page this is: { page, study }. */
export function place() {
  const [, study, page] = location.pathname.match(/^\/study\/([^/]+)\/([a-z]+)$/) ?? [];
  return study ? { page, study } : { page: "runs", study: null };
}

/** The state in the address. */
export function state() {
  return Object.fromEntries(new URLSearchParams(location.search));
}

/** The address of a page of a study, with a state. */
export function addressOf(study, page, parameters = {}) {
  return `/study/${encodeURIComponent(study)}/${page}${search(parameters)}`;
}

/** The address of this page with some of its state changed; `undefined` takes a part out. */
export function changed(changes) {
  return location.pathname + search({ ...state(), ...changes });
}

function search(parameters) {
  const kept = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(kept).toString();
  return query ? `?${query}` : "";
}

/** Change the state; the page's `onstate` is called, as it is on "back". */
export function go(changes, { replace = false } = {}) {
  const address = changed(changes);
  if (address === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new Event("state"));
}

/** Call `work` now, and whenever the state changes. */
export function onState(work) {
  addEventListener("state", work);
  addEventListener("popstate", work);
  return work();
}

/** Make a link change the state instead of loading the page, unless a new tab is wanted. */
export function inPage(event, changes) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(changes);
}

/** Take the token out of the address: from here on a cookie holds it. */
export function forgetToken() {
  const parameters = state();
  if (!("token" in parameters)) return;
  delete parameters.token;
  history.replaceState(null, "", location.pathname + search(parameters));
}
