// A completion of training as a card: what it was paid for, what it moved, what both scorers say.

import { h } from "./dom.js";
import { brief, many, signed } from "./format.js";
import { textOf, verdict } from "./text.js";

/** Return the card of one completion. */
export function card(one, { heading = `sample ${one.sample}`, place = null } = {}) {
  const side = one.advantage > 0 ? "up" : one.advantage < 0 ? "down" : "level";
  return h("article", { class: `card ${side}`, "aria-label": `${heading}, advantage ${signed(one.advantage)}` },
    h("header", {},
      h("span", { class: `advantage ${side}`, title: "advantage, as the trainer applied it" },
        h("span", { "aria-hidden": "true" }, side === "up" ? "▲ " : side === "down" ? "▽ " : "· "), signed(one.advantage)),
      h("span", { class: "muted" }, place ?? heading),
      h("span", { class: "chips" }, one.components.map(chip), total(one))),
    textOf(one.taken.completion, { rule: one.taken.rule }),
    h("footer", {},
      h("span", {}, verdict("training parser", one.historical)),
      h("span", {}, verdict("strict", one.strict)),
      h("span", {}, verdict("lenient", one.lenient)),
      h("span", { class: "facts" }, facts(one))));
}

/** raw x weight = contribution. */
function chip(component) {
  const { name, value, weight, contribution, status } = component;
  const told = value === null
    ? [h("b", {}, "none"), ` ${status}`]
    : [brief(value), h("span", { class: "muted" }, " × "), brief(weight), h("span", { class: "muted" }, " = "), h("b", {}, brief(contribution))];
  return h("span", { class: "chip", title: `${name}: value × weight = contribution; status: ${status}` }, h("code", {}, name), " ", told);
}

function total(one) {
  return h("span", { class: "chip total", title: "the weighted sum, as the trainer got it" },
    "reward ", h("b", {}, one.reward === null ? "none" : brief(one.reward)));
}

function facts(one) {
  const taken = one.taken;
  return [
    taken.extracted === null ? "nothing extracted" : taken.rule ? ["rule ", h("code", {}, taken.rule)] : taken.note,
    ` · ${many(one.tokens, "token")}`,
    one.finish === "length" ? [" · ", h("b", { class: "cut" }, "cut at the limit")] : one.finish === "eos" ? "" : ` · ended by ${one.finish}`,
    one.formatted ? " · in the asked format" : "",
    one.repetition > 0.05 ? ` · ${Math.round(100 * one.repetition)} % repeated` : "",
    one.reflection.length ? ` · reflects: ${one.reflection.join(", ")}` : "",
  ];
}

/** The question and its gold. */
export function asked(question, gold) {
  const missing = { text: "not read yet", escapes: [], mark: null, cut: 0 };
  return h("dl", { class: "asked" },
    h("dt", {}, "Question"), h("dd", { class: "question" }, textOf(question ?? missing)),
    h("dt", {}, "Gold"), h("dd", { class: "gold" }, textOf(gold ?? missing)));
}

/** An answer as a card: its text with what the scorer took, by which rule, beside the gold. */
export function answerCard(name, one, gold, { changes = [], changed = "", marker = false } = {}) {
  const taken = one.taken;
  return h("article", { class: "card", "aria-label": `Answer of ${name}` },
    h("header", {}, h("h2", {}, name), h("span", { class: "facts" },
      one.tokens === null ? "" : many(one.tokens, "token"),
      one.finish === "length" ? [" · ", h("b", { class: "cut" }, "cut at the limit")] : one.finish === "eos" ? "" : ` · ended by ${one.finish}`)),
    textOf(taken.completion, { changes, changed, rule: one.rule, marker: marker ? one.marker : null }),
    h("dl", { class: "took" },
      h("dt", {}, "extracted"),
      h("dd", {}, taken.extracted === null ? h("span", { class: "muted" }, "nothing") : h("code", {}, h("mark", {}, taken.extracted)),
        h("span", { class: "muted" }, " gold "), h("code", {}, gold?.text ?? "–")),
      h("dt", {}, "rule"), h("dd", {}, h("code", {}, one.rule), one.status === "ok" ? "" : ` · ${one.status}`, taken.note ? h("span", { class: "muted" }, ` · ${taken.note}`) : null),
      one.cuts.length ? [h("dt", {}, "cut before"), h("dd", {}, one.cuts.map((word, at) => [at ? ", then " : "", h("code", {}, word)]),
        one.still ? h("b", { class: "cut" }, " · still reflects, so it counts in no analysis") : null)] : null),
    h("footer", {}, verdict("strict", one.strict), verdict("lenient", one.lenient)));
}
