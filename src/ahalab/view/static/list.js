// A list beside a detail: the lines, the pages, and which line is chosen.

import { changed, go, inPage } from "./address.js";
import { byId, fill, h } from "./dom.js";
import { count } from "./format.js";

/**
 * Show lines as links that choose.
 * @param list the <ol>
 * @param lines [{ id, changes, content }]; `changes` is the state that chooses the line
 * @param chosen the id of the chosen one
 */
export function showLines(list, lines, chosen) {
  fill(list, lines.map(({ id, changes, content }) =>
    h("li", {}, h("a", {
      href: changed(changes), "data-id": id, "aria-current": String(id) === String(chosen) ? "true" : null,
      onclick: (event) => inPage(event, changes),
    }, content))));
  list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

/** Move the choice by one line; true when there was a line to go to. */
export function move(list, by) {
  const links = [...list.querySelectorAll("a")];
  const at = links.findIndex((link) => link.hasAttribute("aria-current"));
  const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by;
  if (!links[next]) return false;
  const focused = list.contains(document.activeElement);
  const id = links[next].dataset.id;
  links[next].click();
  if (focused) list.querySelector(`a[data-id="${CSS.escape(id)}"]`)?.focus();
  return true;
}

/** The pager of a list: where it is, and the ways on. */
export function pager(page, pages, total, word, more = false) {
  const turn = (by) => go({ page: page + by === 1 ? undefined : page + by, id: undefined });
  return [
    h("span", { class: "muted" }, `${more ? "more than " : ""}${count(total)} ${word}${total === 1 && !more ? "" : "s"}`),
    h("span", { class: "turn" },
      h("button", { type: "button", id: "previous-page", disabled: page <= 1, onclick: () => turn(-1), "aria-label": "Previous page", title: "Previous page (p)" }, "‹"),
      h("span", { class: "muted" }, `${count(page)} / ${count(pages)}${more ? "+" : ""}`),
      h("button", { type: "button", id: "next-page", disabled: page >= pages && !more, onclick: () => turn(1), "aria-label": "Next page", title: "Next page (n)" }, "›")),
  ];
}

/** A filter that the address holds: applied on Enter and a moment after the last key. */
export function filterBox(value, hint) {
  let timer = 0;
  const apply = () => {
    clearTimeout(timer);
    go({ q: byId("filter").value.trim() || undefined, page: undefined, id: undefined }, { replace: true });
  };
  return h("form", { class: "filter", role: "search", onsubmit: (event) => { event.preventDefault(); apply(); } },
    h("label", { for: "filter" }, "Filter"),
    h("input", {
      id: "filter", type: "search", value, placeholder: hint, spellcheck: "false", autocomplete: "off", "aria-describedby": "filter-fault",
      oninput: () => { clearTimeout(timer); timer = setTimeout(apply, 500); },
    }),
    h("p", { id: "filter-fault", class: "fault", role: "alert" }));
}

/** A labelled choice among [value, text] or [group, [[value, text], ...]]; `choose` is told the value. */
export function chooser(id, label, options, choose) {
  return h("span", { class: "field" }, h("label", { for: id }, label),
    h("select", { id, onchange: (event) => choose(event.target.value) }, choices(options)));
}

/** The options of a chooser. */
export function choices(options) {
  return options.map(([value, text]) => (Array.isArray(text)
    ? h("optgroup", { label: value }, choices(text)) : h("option", { value }, text)));
}

/** Say what is wrong with the filter, or that nothing is. */
export function filterFault(error) {
  const box = byId("filter");
  const fault = byId("filter-fault");
  if (!box) return;
  fill(fault, error ? error.message : "");
  if (error) box.setAttribute("aria-invalid", "true");
  else box.removeAttribute("aria-invalid");
}

/** What a key does that presses a button. */
export const press = (id) => () => { const button = byId(id); if (button && !button.disabled) button.click(); };
