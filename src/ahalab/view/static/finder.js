// A page that searches: a filter, an order, the lines that were found, and the chosen one beside them.

import { go, onState, state } from "./address.js";
import { ask } from "./api.js";
import { byId, fill, h } from "./dom.js";
import { chooser, filterBox, filterFault, move, pager, press, showLines } from "./list.js";
import { failed, tell } from "./tell.js";

/** The keys of such a page. */
export const actions = {
  j: () => move(byId("list"), 1),
  k: () => move(byId("list"), -1),
  n: press("next-page"),
  p: press("previous-page"),
};

/**
 * Show such a page, now and whenever the address changes.
 * @param main where
 * @param study its id
 * @param page { title, word, hint, orders, tools, narrowed, line, show }: `word` is what is found, and
 *   the name of the requests; `orders` are [value, text], the first one is the default; `tools` come
 *   before the filter; `narrowed()` returns what else a search is asked for; `line(one)` is a line's
 *   content; `show(whole)` are the children of the detail
 */
export async function find(main, study, page) {
  const { title, word, hint, orders, tools = [] } = page;
  const [[usual]] = orders;
  fill(main, h("h1", { class: "away" }, title),
    h("div", { class: "tools" }, tools, filterBox(state().q ?? "", hint),
      chooser("sort", "Order", orders, (sort) => go({ sort: sort === usual ? undefined : sort, page: undefined, id: undefined }))),
    h("div", { class: "split" },
      h("nav", { class: "side", "aria-label": `${title} found` }, h("p", { id: "pager", class: "pager" }), h("ol", { id: "list", class: "lines" })),
      h("section", { id: "detail", class: "detail", "aria-label": `The ${word}`, tabindex: "0" })));
  const turn = { now: 0 };
  await onState(() => search(study, page, turn));
}

async function search(study, { word, orders, narrowed = () => ({}), line, show }, turn) {
  const mine = (turn.now += 1);
  const { q = "", sort = orders[0][0], page = "1", id } = state();
  byId("sort").value = sort;
  if (document.activeElement !== byId("filter")) byId("filter").value = q;
  try {
    const found = await ask(`/study/${study}/${word}s`, { ...narrowed(), q, sort, page });
    if (mine !== turn.now) return;
    tell("");
    filterFault(null);
    fill(byId("pager"), pager(found.page, found.pages, found.total, word, found.more));
    const chosen = id ?? found.found[0]?.id;
    showLines(byId("list"), found.found.map((one) => ({ id: one.id, changes: { id: one.id }, content: line(one) })), chosen);
    if (chosen === undefined) return fill(byId("detail"), h("p", { class: "empty" }, `No ${word} is like that.`));
    const whole = await ask(`/study/${study}/${word}`, { id: chosen });
    if (mine !== turn.now) return;
    fill(byId("detail"), show(whole));
    byId("detail").scrollTop = 0;
  } catch (error) {
    if (mine !== turn.now) return;
    if (error.place) return filterFault(error);
    failed(error);
    fill(byId("detail"), h("p", { class: "empty" }, error.message));
  }
}
