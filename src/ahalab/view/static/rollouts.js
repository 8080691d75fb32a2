// Every rollout of a study, by filter and order.

import { addressOf } from "./address.js";
import { asked, card } from "./cards.js";
import { h } from "./dom.js";
import { actions, find } from "./finder.js";
import { number, signed } from "./format.js";
import { outcome } from "./text.js";

export { actions };
export const title = "Rollouts";

const ORDERS = [
  ["place", "order of generation"], ["advantage", "advantage, high first"], ["-advantage", "advantage, low first"],
  ["reward", "reward, high first"], ["-reward", "reward, low first"], ["tokens", "longest first"], ["-tokens", "shortest first"],
];

export function start(main, study) {
  return find(main, study, {
    title,
    word: "rollout",
    hint: 'tokens>200 outcome=wrong reward>0.8 "carry the"',
    orders: ORDERS,
    line,
    show: (whole) => detail(study, whole),
  });
}

function detail(study, whole) {
  const place = h("a", { href: addressOf(study, "steps", { run: whole.run, step: whole.step, group: whole.group }) },
    `${whole.run}, step ${whole.step}, group ${whole.group}, sample ${whole.cards[0].sample}`);
  return [asked(whole.question, whole.gold), h("div", { class: "cards" }, whole.cards.map((one) => card(one, { place })))];
}

function line(one) {
  return [
    h("span", { class: "first" }, one.text || h("i", {}, "(empty)")),
    h("span", { class: "second" }, outcome(one.strict), h("span", {}, `reward ${number(one.reward)}`), h("span", { title: "advantage" }, signed(one.advantage)),
      h("span", { class: "end" }, `${one.run.replace("arms/", "").replace("/seed-", " · ")} · step ${one.step}`)),
  ];
}
