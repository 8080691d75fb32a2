// Texts of models as elements: escapes, the scorer's mark and the diff, laid over one another.

import { h } from "./dom.js";
import { diffWordsWithSpace } from "./vendor/jsdiff/diff/word.js";
import { count } from "./format.js";

const MAX_EDITS = 4000; // words; beyond, two texts have nothing to align
const MAX_MILLISECONDS = 400;

/**
 * Return a text as an element.
 * @param shown { text, escapes, mark, cut } from the server; places in UTF-16 code units
 * @param changes [[from, to], ...] of the diff
 * @param changed class of what the diff marks: "gone" or "new"
 * @param marker [from, to] of the reflection marker that the text was cut before, or null
 */
export function textOf(shown, { changes = [], changed = "", rule = "", marker = null } = {}) {
  const layers = [
    ...shown.escapes.map(([from, to]) => ({ from, to, name: "ctl" })),
    ...changes.map(([from, to]) => ({ from, to, name: changed })),
    ...(marker ? [{ from: marker[0], to: marker[1], name: "reflects" }] : []),
  ];
  const mark = shown.mark && { from: shown.mark[0], to: shown.mark[1] };
  const within = (from, to) => pieces(shown.text, from, to, layers);
  const parts = mark
    ? [
        ...within(0, mark.from),
        h("mark", { title: rule ? `taken by the rule ${rule}` : "taken by the scorer" }, within(mark.from, mark.to)),
        ...within(mark.to, shown.text.length),
      ]
    : within(0, shown.text.length);
  const empty = shown.text === "" ? h("i", { class: "muted" }, "(empty)") : null;
  const cut = shown.cut ? h("i", { class: "muted" }, ` … ${count(shown.cut)} characters more`) : null;
  return h("div", { class: "text" }, parts, empty, cut);
}

/** Cut a stretch of text at every border of a layer. */
function pieces(text, from, to, layers) {
  const here = layers.filter((layer) => layer.from < to && layer.to > from);
  const borders = new Set([from, to]);
  for (const layer of here) {
    borders.add(Math.max(from, layer.from));
    borders.add(Math.min(to, layer.to));
  }
  const places = [...borders].sort((a, b) => a - b);
  return places.slice(0, -1).map((start, at) => {
    const end = places[at + 1];
    const names = here.filter((layer) => layer.from <= start && layer.to >= end).map((layer) => layer.name);
    const piece = text.slice(start, end);
    return names.length ? h("span", { class: names.join(" ") }, piece) : document.createTextNode(piece);
  });
}

/** Return what differs by words: { before: ranges, after: ranges }, or null for two texts too far apart. */
export function differences(before, after) {
  const parts = diffWordsWithSpace(before, after, { maxEditLength: MAX_EDITS, timeout: MAX_MILLISECONDS });
  if (!parts) return null;
  const ranges = { before: [], after: [] };
  let left = 0;
  let right = 0;
  for (const part of parts) {
    const length = part.value.length;
    if (part.removed) ranges.before.push([left, left + length]);
    if (part.added) ranges.after.push([right, right + length]);
    if (!part.added) left += length;
    if (!part.removed) right += length;
  }
  return ranges;
}

const SIGNS = { correct: "✓", wrong: "✗", unparsed: "?", truncated: "…", error: "!" };

/** A verdict: a word and a sign, so that colour is not needed. */
export function verdict(label, outcome) {
  return h("span", { class: "verdict" },
    h("span", { class: "muted" }, `${label} `),
    h("b", { class: `outcome ${outcome}` }, h("span", { "aria-hidden": "true" }, `${SIGNS[outcome] ?? "?"} `), outcome));
}

/** An outcome without a label. */
export const outcome = (word) =>
  h("b", { class: `outcome ${word}` }, h("span", { "aria-hidden": "true" }, `${SIGNS[word] ?? "?"} `), word);
