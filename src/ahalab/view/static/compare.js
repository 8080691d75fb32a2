// Base and adapter on the same questions: a list beside one pair, aligned word by word.

import { go, onState, state } from "./address.js";
import { ask } from "./api.js";
import { asked } from "./cards.js";
import { byId, fill, h } from "./dom.js";
import { count, many } from "./format.js";
import { chooser, filterBox, filterFault, move, pager, press, showLines } from "./list.js";
import { failed, tell } from "./tell.js";
import { differences, textOf, verdict } from "./text.js";

export const title = "Compare";

const SHOWS = ["all", "gained", "lost", "both wrong", "both right", "format only", "extraction differs", "truncated"];
const SIGNS = { gained: "▲", lost: "▽", "both right": "✓", "both wrong": "✗" };

const choose = (show) => go({ show: state().show === show ? undefined : show, page: undefined, id: undefined });
const toCell = (by) => {
  const select = byId("cell");
  const option = select.options[select.selectedIndex + by];
  if (option) go({ cell: option.value, page: undefined, id: undefined });
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
let turn = 0;

export async function start(main, id) {
  study = id;
  const { runs } = await ask(`/study/${id}`);
  fill(main, h("h1", { class: "away" }, "Compare"),
    h("div", { class: "tools" },
      chooser("cell", "Adapter", runs.map((run) => [run.name, `${run.arm} · ${run.seed}${run.control ? " (control)" : ""}`]),
        (cell) => go({ cell, page: undefined, id: undefined })),
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
  const { cell = byId("cell").options[0]?.value, metric = "strict", show: kind = "all", q = "", page = "1", id } = state();
  byId("cell").value = cell;
  byId("metric").value = metric;
  if (document.activeElement !== byId("filter")) byId("filter").value = q;
  try {
    const found = await ask(`/study/${study}/pairs`, { cell, metric, show: kind, q, page });
    if (mine !== turn) return;
    tell("");
    filterFault(null);
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
    const pair = await ask(`/study/${study}/pair`, { cell, id: chosen });
    if (mine !== turn) return;
    detail(pair);
  } catch (error) {
    if (mine !== turn) return;
    if (error.place) return filterFault(error);
    failed(error);
    fill(byId("list"));
    fill(byId("pager"));
    fill(byId("detail"), h("p", { class: "empty" }, error.message));
  }
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
        h("span", { class: "end" }, one.base === one.adapter ? one.base : `${one.base} → ${one.adapter}`)),
    ],
  };
}

function detail(pair) {
  const off = noDiff();
  const found = off ? { before: [], after: [] } : differences(pair.base.taken.completion.text, pair.adapter.taken.completion.text);
  const far = found ? null : h("p", { class: "muted" }, "The two texts are too far apart to align.");
  const same = pair.base.taken.completion.text === pair.adapter.taken.completion.text;
  const name = pair.cell.replace("arms/", "").replace("/seed-", " · ");
  fill(byId("detail"),
    asked(pair.question, pair.gold),
    far, same ? h("p", { class: "muted" }, "Both wrote the same, character by character.") : null,
    h("div", { class: "pair" },
      side("base", pair.base, found?.before ?? [], "gone", pair),
      side(name, pair.adapter, found?.after ?? [], "new", pair)),
    h("p", { class: "muted place" }, `${pair.prompt}, sample ${pair.sample}`));
  byId("detail").scrollTop = 0;
}

function side(name, one, changes, changed, pair) {
  const taken = one.taken;
  return h("article", { class: "card", "aria-label": `Answer of ${name}` },
    h("header", {}, h("h2", {}, name), h("span", { class: "facts" },
      one.tokens === null ? "" : many(one.tokens, "token"),
      one.finish === "length" ? [" · ", h("b", { class: "cut" }, "cut at the limit")] : one.finish === "eos" ? "" : ` · ended by ${one.finish}`)),
    textOf(taken.completion, { changes, changed, rule: one.rule }),
    h("dl", { class: "took" },
      h("dt", {}, "extracted"),
      h("dd", {}, taken.extracted === null ? h("span", { class: "muted" }, "nothing") : h("code", {}, h("mark", {}, taken.extracted)),
        h("span", { class: "muted" }, " gold "), h("code", {}, pair.gold?.text ?? "–")),
      h("dt", {}, "rule"), h("dd", {}, h("code", {}, one.rule), one.status === "ok" ? "" : ` · ${one.status}`, taken.note ? h("span", { class: "muted" }, ` · ${taken.note}`) : null)),
    h("footer", {}, verdict("strict", one.strict), verdict("lenient", one.lenient)));
}

