// Every rollout of a study, by filter and order.

import { addressOf, go, onState, state } from "./address.js";
import { ask } from "./api.js";
import { asked, card } from "./cards.js";
import { byId, fill, h } from "./dom.js";
import { number, signed } from "./format.js";
import { chooser, filterBox, filterFault, move, pager, press, showLines } from "./list.js";
import { failed, tell } from "./tell.js";
import { outcome } from "./text.js";

export const title = "Rollouts";
export const actions = {
  j: () => move(byId("list"), 1),
  k: () => move(byId("list"), -1),
  n: press("next-page"),
  p: press("previous-page"),
};

const ORDERS = [
  ["place", "order of generation"], ["advantage", "advantage, high first"], ["-advantage", "advantage, low first"],
  ["reward", "reward, high first"], ["-reward", "reward, low first"], ["tokens", "longest first"], ["-tokens", "shortest first"],
];
let study = "";
let turn = 0;

export async function start(main, id) {
  study = id;
  fill(main, h("h1", { class: "away" }, "Rollouts"),
    h("div", { class: "tools" }, filterBox(state().q ?? "", 'tokens>200 outcome=wrong reward>0.8 "carry the"'),
      chooser("sort", "Order", ORDERS, (sort) => go({ sort: sort === "place" ? undefined : sort, page: undefined, id: undefined }))),
    h("div", { class: "split" },
      h("nav", { class: "side", "aria-label": "Rollouts found" }, h("p", { id: "pager", class: "pager" }), h("ol", { id: "list", class: "lines" })),
      h("section", { id: "detail", class: "detail", "aria-label": "The rollout", tabindex: "0" })));
  await onState(show);
}

async function show() {
  const mine = (turn += 1);
  const { q = "", sort = "place", page = "1", id } = state();
  byId("sort").value = sort;
  if (document.activeElement !== byId("filter")) byId("filter").value = q;
  try {
    const found = await ask(`/study/${study}/rollouts`, { q, sort, page });
    if (mine !== turn) return;
    tell("");
    filterFault(null);
    fill(byId("pager"), pager(found.page, found.pages, found.total, "rollout", found.more));
    const chosen = id ?? found.found[0]?.id;
    showLines(byId("list"), found.found.map(line), chosen);
    if (chosen === undefined) return fill(byId("detail"), h("p", { class: "empty" }, "No rollout is like that."));
    const whole = await ask(`/study/${study}/rollout`, { id: chosen });
    if (mine !== turn) return;
    detail(whole);
  } catch (error) {
    if (mine !== turn) return;
    if (error.place) return filterFault(error);
    failed(error);
    fill(byId("detail"), h("p", { class: "empty" }, error.message));
  }
}

function detail(whole) {
  const place = h("a", { href: addressOf(study, "steps", { run: whole.run, step: whole.step, group: whole.group }) },
    `${whole.run}, step ${whole.step}, group ${whole.group}, sample ${whole.cards[0].sample}`);
  fill(byId("detail"), asked(whole.question, whole.gold), h("div", { class: "cards" }, whole.cards.map((one) => card(one, { place }))));
  byId("detail").scrollTop = 0;
}

function line(one) {
  return {
    id: one.id,
    changes: { id: one.id },
    content: [
      h("span", { class: "first" }, one.text || h("i", {}, "(empty)")),
      h("span", { class: "second" }, outcome(one.strict), h("span", {}, `reward ${number(one.reward)}`), h("span", { title: "advantage" }, signed(one.advantage)),
        h("span", { class: "end" }, `${one.run.replace("arms/", "").replace("/seed-", " · ")} · step ${one.step}`)),
    ],
  };
}
