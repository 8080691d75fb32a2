// Every answer of a study, by set, filter and order: evaluation, validation, replay, templates, reflection.

import { addressOf, go, onState, state } from "./address.js";
import { ask } from "./api.js";
import { answerCard, asked } from "./cards.js";
import { byId, fill, h } from "./dom.js";
import { many } from "./format.js";
import { chooser, filterBox, filterFault, move, pager, press, showLines } from "./list.js";
import { filesOf, grouped, setsOf } from "./sets.js";
import { failed, tell } from "./tell.js";
import { outcome } from "./text.js";

export const title = "Answers";
export const actions = {
  j: () => move(byId("list"), 1),
  k: () => move(byId("list"), -1),
  n: press("next-page"),
  p: press("previous-page"),
};

const ORDERS = [["place", "as they were read"], ["tokens", "longest first"], ["-tokens", "shortest first"]];
let study = "";
let titles = new Map(); // of every set, by name
let turn = 0;

export async function start(main, id) {
  study = id;
  const { answers } = await ask(`/study/${id}`);
  titles = new Map(setsOf(answers).map((set) => [set.name, set.title]));
  fill(main, h("h1", { class: "away" }, "Answers"),
    h("div", { class: "tools" },
      chooser("set", "Answers", [["", "all of the study"], ...grouped(filesOf(answers))], (set) => go({ set: set || undefined, page: undefined, id: undefined })),
      filterBox(state().q ?? "", 'outcome=wrong kind=validation step>=20 "carry the"'),
      chooser("sort", "Order", ORDERS, (sort) => go({ sort: sort === "place" ? undefined : sort, page: undefined, id: undefined }))),
    h("div", { class: "split" },
      h("nav", { class: "side", "aria-label": "Answers found" }, h("p", { id: "pager", class: "pager" }), h("ol", { id: "list", class: "lines" })),
      h("section", { id: "detail", class: "detail", "aria-label": "The answer", tabindex: "0" })));
  await onState(show);
}

async function show() {
  const mine = (turn += 1);
  const { set = "", q = "", sort = "place", page = "1", id } = state();
  byId("set").value = set;
  byId("sort").value = sort;
  if (document.activeElement !== byId("filter")) byId("filter").value = q;
  try {
    const found = await ask(`/study/${study}/answers`, { set, q, sort, page });
    if (mine !== turn) return;
    tell("");
    filterFault(null);
    fill(byId("pager"), pager(found.page, found.pages, found.total, "answer", found.more));
    const chosen = id ?? found.found[0]?.id;
    showLines(byId("list"), found.found.map(line), chosen);
    if (chosen === undefined) return fill(byId("detail"), h("p", { class: "empty" }, "No answer is like that."));
    const whole = await ask(`/study/${study}/answer`, { id: chosen });
    if (mine !== turn) return;
    detail(whole);
  } catch (error) {
    if (mine !== turn) return;
    if (error.place) return filterFault(error);
    failed(error);
    fill(byId("detail"), h("p", { class: "empty" }, error.message));
  }
}

const nameOf = (set) => titles.get(set) ?? set;

function detail(whole) {
  fill(byId("detail"), asked(whole.question, whole.gold),
    h("div", { class: "cards" }, answerCard(nameOf(whole.set), whole.answer, whole.gold)),
    h("p", { class: "muted place" }, `${whole.prompt}, sample ${whole.sample} · `,
      h("a", { href: addressOf(study, "compare", { cell: whole.set, id: whole.id }) }, "compare")));
  byId("detail").scrollTop = 0;
}

function line(one) {
  return {
    id: one.id,
    changes: { id: one.id },
    content: [
      h("span", { class: "first" }, one.text || h("i", {}, "(empty)")),
      h("span", { class: "second" }, outcome(one.strict),
        one.tokens !== null && byId("sort").value.endsWith("tokens") ? h("span", {}, many(one.tokens, "token")) : null,
        h("span", { class: "end" }, nameOf(one.set))),
    ],
  };
}
