// Two sets of answers to the same questions: a list beside one pair, aligned word by word.

import { go, onState, state } from "./address.js";
import { ask } from "./api.js";
import { answerCard, asked } from "./cards.js";
import { byId, fill, h } from "./dom.js";
import { count } from "./format.js";
import { choices, chooser, filterBox, filterFault, move, pager, press, showLines } from "./list.js";
import { grouped, setsOf } from "./sets.js";
import { failed, tell } from "./tell.js";
import { differences } from "./text.js";

export const title = "Compare";

const SHOWS = ["all", "gained", "lost", "both wrong", "both right", "format only", "extraction differs", "truncated", "same", "not the same"];
const SIGNS = { gained: "▲", lost: "▽", "both right": "✓", "both wrong": "✗" };

const choose = (show) => go({ show: state().show === show ? undefined : show, page: undefined, id: undefined });
const toSet = (cell) => go({ cell, against: undefined, page: undefined, id: undefined });
const toCell = (by) => {
  const select = byId("cell");
  const option = select.options[select.selectedIndex + by];
  if (option) toSet(option.value);
};
const noDiff = () => state().diff === "off";

export const actions = {
  j: () => move(byId("list"), 1),
  k: () => move(byId("list"), -1),
  n: press("next-page"),
  p: press("previous-page"),
  "[": () => toCell(-1),
  "]": () => toCell(1),
  g: () => choose("gained"),
  l: () => choose("lost"),
  d: () => go({ diff: noDiff() ? undefined : "off" }),
};

let study = "";
let sets = []; // every set with answers
let turn = 0;

export async function start(main, id) {
  study = id;
  sets = setsOf((await ask(`/study/${id}`)).answers);
  fill(main, h("h1", { class: "away" }, "Compare"),
    h("div", { class: "tools" },
      chooser("cell", "Answers", grouped(sets), toSet),
      chooser("against", "Beside", [], (against) => go({ against, page: undefined, id: undefined })),
      chooser("metric", "Reading", [["strict", "strict"], ["lenient", "lenient"]],
        (metric) => go({ metric: metric === "strict" ? undefined : metric, page: undefined, id: undefined })),
      filterBox(state().q ?? "", "tokens>200 base.strict=wrong rule=hashes word")),
    h("div", { id: "shows", class: "shows", role: "group", "aria-label": "Kinds of pairs" }),
    h("p", { id: "note", class: "notice", hidden: true }),
    h("div", { class: "split" },
      h("nav", { class: "side", "aria-label": "Pairs found" }, h("p", { id: "pager", class: "pager" }), h("ol", { id: "list", class: "lines" })),
      h("section", { id: "detail", class: "detail", "aria-label": "The pair", tabindex: "0" })));
  await onState(show);
}

async function show() {
  const mine = (turn += 1);
  const { cell = firstAdapter(), against, metric = "strict", show: kind = "all", q = "", page = "1", id } = state();
  byId("cell").value = cell;
  byId("metric").value = metric;
  if (document.activeElement !== byId("filter")) byId("filter").value = q;
  try {
    const found = await ask(`/study/${study}/pairs`, { cell, against, metric, show: kind, q, page });
    if (mine !== turn) return;
    tell("");
    filterFault(null);
    offer(found.before, found.after);
    kinds(found.counts, kind);
    byId("note").hidden = !found.note;
    byId("note").textContent = found.note;
    fill(byId("pager"), pager(found.page, found.pages, found.total, "pair"));
    const chosen = id ?? found.pairs[0]?.id;
    showLines(byId("list"), found.pairs.map(line), chosen);
    if (chosen === undefined) {
      const why = found.counts.all ? "No pair is like that." : "There are no answers of both sides yet.";
      return fill(byId("detail"), h("p", { class: "empty" }, why));
    }
    const pair = await ask(`/study/${study}/pair`, { cell, against, id: chosen });
    if (mine !== turn) return;
    detail(pair, found.before, found.after);
  } catch (error) {
    if (mine !== turn) return;
    if (error.place) return filterFault(error);
    failed(error);
    offer(against, cell);
    fill(byId("shows"));
    byId("note").hidden = true;
    fill(byId("list"));
    fill(byId("pager"));
    fill(byId("detail"), h("p", { class: "empty" }, error.message));
  }
}

const firstAdapter = () => (sets.find((one) => one.row.kind === "evaluation" && one.row.arm !== null) ?? sets[0])?.name;

const isCut = (row) => row.kind === "without" || row.kind === "kept";

/** Whether two sets can be laid side by side: the same questions, and what was cut beside what it was. */
function fit(one, other) {
  if (one.split !== other.split) return false;
  if (!isCut(one) && !isCut(other)) return true;
  return one.arm === other.arm && one.seed === other.seed && [one, other].every((row) => isCut(row) || row.kind === "evaluation");
}

/** Offer to compare with every set that fits. */
function offer(before, after) {
  const row = sets.find((one) => one.name === after)?.row;
  fill(byId("against"), choices(grouped(sets.filter((one) => row && one.name !== after && fit(one.row, row)))));
  byId("against").value = before ?? "";
}

function kinds(counts, chosen) {
  const focused = document.activeElement?.dataset?.show;
  fill(byId("shows"), SHOWS.map((name) =>
    h("button", { type: "button", "data-show": name, "aria-pressed": String(name === chosen), onclick: () => choose(name === "all" ? undefined : name) },
      SIGNS[name] ? h("span", { "aria-hidden": "true", class: `sign ${name.replace(" ", "-")}` }, `${SIGNS[name]} `) : null,
      name, h("span", { class: "muted" }, ` ${count(counts[name])}`))),
  h("button", { type: "button", class: "quiet", id: "diff", "data-show": "diff", "aria-pressed": String(!noDiff()), onclick: actions.d, title: "Word diff (d)" }, `word diff ${noDiff() ? "off" : "on"}`));
  if (focused) byId("shows").querySelector(`[data-show="${focused}"]`)?.focus();
}

function line(one) {
  return {
    id: one.id,
    changes: { id: one.id },
    content: [
      h("span", { class: "first" }, one.question || "question not read yet"),
      h("span", { class: "second" },
        h("b", { class: `sign ${one.change.replace(" ", "-")}` }, h("span", { "aria-hidden": "true" }, `${SIGNS[one.change]} `), one.change),
        one.same ? h("span", { title: "to the byte" }, "same") : null,
        h("span", { class: "end" }, one.before === one.after ? one.before : `${one.before} → ${one.after}`)),
    ],
  };
}

function detail(pair, before, after) {
  const off = noDiff();
  const found = off ? { before: [], after: [] } : differences(pair.before.taken.completion.text, pair.after.taken.completion.text);
  const far = found ? null : h("p", { class: "muted" }, "The two texts are too far apart to align.");
  const texts = pair.before.taken.completion.text === pair.after.taken.completion.text;
  const same = pair.same ? "Both are the same to the byte, token ids and verdicts included."
    : texts ? "Both wrote the same, character by character; token ids or verdicts differ." : null;
  const cut = pair.before.cuts.length || pair.after.cuts.length; // one finishes what the other begins
  fill(byId("detail"),
    asked(pair.question, pair.gold),
    far, same ? h("p", { class: "muted" }, same) : null,
    h("div", { class: "pair" },
      answerCard(nameOf(before), pair.before, pair.gold, { changes: found?.before, changed: "gone", marker: cut }),
      answerCard(nameOf(after), pair.after, pair.gold, { changes: found?.after, changed: "new", marker: cut })),
    h("p", { class: "muted place" }, `${pair.prompt}, sample ${pair.sample}`));
  byId("detail").scrollTop = 0;
}

const nameOf = (set) => sets.find((one) => one.name === set)?.title ?? set;
