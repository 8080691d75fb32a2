// Every answer of a study, by set, filter and order: evaluation, validation, replay, templates, reflection.

import { addressOf, go, state } from "./address.js";
import { ask } from "./api.js";
import { answerCard, asked } from "./cards.js";
import { byId, h } from "./dom.js";
import { actions, find } from "./finder.js";
import { many } from "./format.js";
import { chooser } from "./list.js";
import { filesOf, grouped, setsOf } from "./sets.js";
import { outcome } from "./text.js";

export { actions };
export const title = "Answers";

const ORDERS = [["place", "as they were read"], ["tokens", "longest first"], ["-tokens", "shortest first"]];

export async function start(main, study) {
  const { answers } = await ask(`/study/${study}`);
  const titles = new Map(setsOf(answers).map((set) => [set.name, set.title]));
  const nameOf = (set) => titles.get(set) ?? set;
  await find(main, study, {
    title,
    word: "answer",
    hint: 'outcome=wrong kind=validation step>=20 "carry the"',
    orders: ORDERS,
    tools: [chooser("set", "Answers", [["", "all of the study"], ...grouped(filesOf(answers))],
      (set) => go({ set: set || undefined, page: undefined, id: undefined }))],
    narrowed,
    line: (one) => line(nameOf(one.set), one),
    show: (whole) => detail(study, nameOf(whole.set), whole),
  });
}

/** The set that the address names, which the chooser shows too. */
function narrowed() {
  const { set = "" } = state();
  byId("set").value = set;
  return { set };
}

function detail(study, name, whole) {
  return [
    asked(whole.question, whole.gold),
    h("div", { class: "cards" }, answerCard(name, whole.answer, whole.gold)),
    h("p", { class: "muted place" }, `${whole.prompt}, sample ${whole.sample} · `,
      h("a", { href: addressOf(study, "compare", { cell: whole.set, id: whole.id }) }, "compare")),
  ];
}

function line(name, one) {
  return [
    h("span", { class: "first" }, one.text || h("i", {}, "(empty)")),
    h("span", { class: "second" }, outcome(one.strict),
      one.tokens !== null && byId("sort").value.endsWith("tokens") ? h("span", {}, many(one.tokens, "token")) : null,
      h("span", { class: "end" }, name)),
  ];
}
