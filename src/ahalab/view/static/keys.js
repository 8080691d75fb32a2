// Keys, the same on every page, and the dialog that lists them.

import { ask } from "./api.js";
import { place } from "./address.js";
import { byId, fill, h } from "./dom.js";

const TOLD = [
  ["j", "k", "next, previous in the list"],
  ["n", "p", "next, previous page of the list"],
  ["[", "]", "previous, next step, or set of answers where pairs are compared"],
  ["/", null, "to the filter"],
  ["g", "l", "pairs gained, pairs lost"],
  ["d", null, "word diff on and off"],
  ["?", null, "this list"],
];

/** Listen for keys: `actions` is key -> what it does on this page. */
export function keys(actions) {
  const all = {
    "/": () => byId("filter")?.focus(),
    "?": open,
    ...actions,
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const typing = event.target.closest("input, select, textarea, dialog");
    if (typing) {
      if (event.key === "Escape" && event.target.id === "filter") event.target.blur();
      return;
    }
    const action = Object.hasOwn(all, event.key) ? all[event.key] : null;
    if (!action) return;
    event.preventDefault();
    action();
  });
  byId("help").addEventListener("click", open);
}

async function open() {
  const dialog = byId("dialog");
  if (dialog.open) return;
  const key = (text) => text && h("kbd", {}, text);
  const list = h("dl", { class: "keys" }, TOLD.map(([one, other, what]) => [
    h("dt", {}, key(one), other ? " " : null, key(other)), h("dd", {}, what)]));
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const fields = h("div", {});
  fill(dialog, h("h2", { id: "dialog-title" }, "Keys"), list, fields, close);
  dialog.showModal();
  const { study, page } = place();
  if (study && ["rollouts", "answers", "compare"].includes(page)) fill(fields, await filterHelp(study, page));
}

async function filterHelp(study, page) {
  const help = await ask(`/study/${study}/filters`);
  const fields = { compare: help.pairs, answers: help.answers, rollouts: help.rollouts }[page];
  const says = (field) => [field.says, field.choices.join(", "), field.kind === "flag" ? "yes, no" : ""].filter(Boolean).join(": ");
  return [
    h("h2", {}, "Filter"),
    h("p", {}, "Terms with blanks between, all of which must hold: a ", h("code", {}, "word"), ", a ", h("code", {}, '"whole phrase"'),
      ", the start of a word (", h("code", {}, "carr*"), "), or a field, an operator and a value: ", h("code", {}, "tokens>200"), ", ",
      h("code", {}, "outcome=wrong,unparsed"), ", ", h("code", {}, 'text~"#### 7"'), ". A ", h("code", {}, "-"), " before a term turns it round."),
    h("dl", { class: "fields" }, fields.map((field) => [h("dt", {}, h("code", {}, field.name)), h("dd", {}, says(field) || field.kind)])),
  ];
}
