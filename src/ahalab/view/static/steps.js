// Step, group, completions: what the model was shown of its own work, the highest advantage first.

import { go, onState, state } from "./address.js";
import { ask } from "./api.js";
import { asked, card } from "./cards.js";
import { byId, fill, h } from "./dom.js";
import { count, number } from "./format.js";
import { chooser, move, press, showLines } from "./list.js";
import { failed, tell } from "./tell.js";

export const title = "Steps";
export const actions = {
  j: () => move(byId("list"), 1),
  k: () => move(byId("list"), -1),
  "[": press("previous-step"),
  "]": press("next-step"),
};

let study = "";
let runs = [];
let here = null; // the step that is shown

export async function start(main, id) {
  study = id;
  runs = (await ask(`/study/${id}`)).runs;
  fill(main, h("h1", { class: "away" }, "Steps"),
    h("div", { class: "tools" },
      chooser("run", "Run", runs.map((run) => [run.name, `${run.arm} · ${run.seed}${run.control ? " (control)" : ""}`]),
        (run) => go({ run, group: undefined })),
      h("span", { class: "field" }, h("label", { for: "step" }, "Step"),
      h("button", { type: "button", id: "previous-step", "aria-label": "Previous step", title: "Previous step ([)", onclick: () => toStep(here?.previous) }, "‹"),
      h("input", { id: "step", type: "number", min: 0, onchange: (event) => toStep(event.target.value) }),
      h("button", { type: "button", id: "next-step", "aria-label": "Next step", title: "Next step (])", onclick: () => toStep(here?.next) }, "›"),
        h("button", { type: "button", id: "last-step", class: "quiet", onclick: () => toStep(undefined, true) }, "latest")),
      h("span", { id: "range", class: "muted" })),
    h("div", { class: "split" },
      h("nav", { class: "side", "aria-label": "Groups of the step" }, h("ol", { id: "list", class: "lines" })),
      h("section", { id: "detail", class: "detail", "aria-label": "Completions of the group", tabindex: "0" })));
  await onState(show);
}

function toStep(step, latest = false) {
  if (latest && "step" in state()) go({ step: undefined, group: undefined });
  else if (latest) show(); // the address stays, and what is the latest may be another by now
  else if (step !== null && step !== undefined && step !== "") go({ step });
}

let turn = 0;

async function show() {
  const mine = (turn += 1);
  const { run = runs[0]?.name, step, group } = state();
  byId("run").value = run;
  try {
    const found = await ask(`/study/${study}/step`, { run, step });
    if (mine !== turn) return;
    here = found;
    byId("step").value = found.step;
    byId("previous-step").disabled = found.previous === null;
    byId("next-step").disabled = found.next === null;
    byId("range").textContent = `of ${count(found.first)} to ${count(found.last)} · ${count(found.groups.length)} groups`;
    const chosen = found.groups.some((one) => String(one.group) === group) ? group : found.groups[0].group;
    showLines(byId("list"), found.groups.map(line), chosen);
    const whole = await ask(`/study/${study}/group`, { run, step: found.step, group: chosen });
    if (mine !== turn) return;
    tell("");
    fill(byId("detail"), asked(whole.question, whole.gold), h("div", { class: "cards" }, whole.cards.map((one) => card(one))));
    byId("detail").scrollTop = 0;
  } catch (error) {
    if (mine !== turn) return;
    failed(error);
    here = null;
    fill(byId("list"));
    fill(byId("detail"), h("p", { class: "empty" }, error.message));
  }
}

function line(one) {
  const dots = "●".repeat(Math.min(one.right, 16)) + "○".repeat(Math.max(0, Math.min(one.rollouts, 16) - one.right));
  const dead = one.reward_spread === 0;
  return {
    id: one.group,
    changes: { step: here.step, group: one.group },
    content: [
      h("span", { class: "first" }, one.question || "question not read yet"),
      h("span", { class: "second" },
        h("span", { class: "dots", "aria-hidden": "true" }, dots), `${one.right} of ${one.rollouts} right`,
        h("span", { class: "end" }, dead ? h("span", { class: "dead", title: "all rewards are equal: no gradient" }, "dead ") : null, `reward ${number(one.reward_mean)}`)),
    ],
  };
}

