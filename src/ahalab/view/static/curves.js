// Live curves: one figure a chart, on a scale of its own; a thin line per seed, a thick mean per arm.

import { go, onState, state } from "./address.js";
import { ask, every } from "./api.js";
import { byId, fill, h, s } from "./dom.js";
import { failed, tell } from "./tell.js";
import { redraw } from "./plot.js";

export const title = "Curves";

const HEADINGS = { reward: "Rewards", accuracy: "Accuracy of the rollouts", groups: "Groups", text: "Texts", optimiser: "Optimiser" };

const seen = { cursor: "", every: 1, figures: [], looks: [], runs: new Map() };
const charts = new Map(); // figure -> what draws it
let study = "";

export async function start(main, id) {
  study = id;
  fill(main, h("h1", { class: "away" }, "Curves"),
    h("div", { id: "legend", class: "legend", role: "group", "aria-label": "Arms shown" }),
    h("div", { id: "charts" }, h("p", { class: "empty" }, "Reading …")));
  addEventListener("resize", drawAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { charts.clear(); drawAll(); });
  await every(2000, look, failed);
  onState(drawAll);
}

async function look() {
  const found = await ask(`/study/${study}/curves`, { since: seen.cursor }, { poll: true });
  tell("");
  if (!found) return;
  const before = drawn();
  if (found.whole) seen.runs.clear();
  Object.assign(seen, { cursor: found.cursor, every: found.every, figures: found.figures, looks: found.looks });
  for (const curve of found.curves) take(curve);
  for (const run of seen.runs.values()) for (const key of [...run.points.keys()].filter(isValidation)) run.points.delete(key);
  for (const curve of found.checkpoints) take(curve); // all there are: a resume may have taken some back
  if (found.whole || before !== drawn()) charts.clear();
  drawAll();
}

const figures = () => seen.figures.filter((figure) => [...seen.runs.values()].some((run) => run.points.get(figure.key)?.size));
const drawn = () => figures().map((figure) => figure.key).join();

/** Add the new steps of a run to those that are here. */
function take(curve) {
  const run = seen.runs.get(curve.run) ?? { arm: curve.arm, seed: curve.seed, points: new Map() };
  seen.runs.set(curve.run, run);
  for (const [figure, values] of Object.entries(curve.values)) {
    if (!run.points.has(figure)) run.points.set(figure, new Map());
    const points = run.points.get(figure);
    values.forEach((value, at) => value !== null && points.set(curve.steps[at], value));
  }
}

const isValidation = (key) => key.startsWith("validation:");

const hidden = () => new Set((state().hide ?? "").split(",").filter(Boolean).map(Number));

function drawAll() {
  drawLegend();
  const box = byId("charts");
  if (!charts.size) {
    const kept = figures();
    if (!kept.length) return fill(box, h("p", { class: "empty" }, "No step has been committed yet."));
    fill(box, Object.entries(HEADINGS).map(([heading, text]) => section(text, kept.filter((figure) => figure.heading === heading))));
  }
  const span = stepsOf([...seen.runs.values()].flatMap((run) => [...run.points.values()]));
  for (const [figure, chart] of charts) redraw(chart, dataOf(figure), seen.looks, [span[0], span.at(-1)]);
}

function section(text, figures) {
  if (!figures.length) return null;
  const validated = figures.some((figure) => isValidation(figure.key));
  return h("section", {}, h("h2", {}, validated ? `${text} and validation` : text), h("div", { class: "charts" }, figures.map((figure) => {
    const component = figure.key.startsWith("component:");
    const plot = h("div", { class: "plot", role: "img" });
    const values = h("p", { class: "values" });
    charts.set(figure.key, { figure, plot, values, paint: null });
    return h("figure", {}, h("figcaption", {}, component ? h("code", {}, figure.title) : figure.title,
      h("small", {}, figure.unit ? ` ${figure.unit}` : "", component ? " component, mean" : "")), plot, values);
  })));
}

/** The steps of some points, in order, each once. */
const stepsOf = (points) => [...new Set(points.flatMap((one) => [...one.keys()]))].sort((a, b) => a - b);

/** The lines of a figure: { steps, lines: [{ arm, mean, label, values }] }, the means last, so that they lie on top. */
function dataOf(key) {
  const away = hidden();
  const runs = [...seen.runs.values()].filter((run) => !away.has(run.arm) && run.points.get(key)?.size);
  const steps = stepsOf(runs.map((run) => run.points.get(key)));
  const thin = runs.map((run) => ({
    arm: run.arm, mean: false, label: `${seen.looks[run.arm].arm}, seed ${run.seed}`,
    values: steps.map((step) => run.points.get(key).get(step) ?? null),
  }));
  const thick = [...new Set(runs.map((run) => run.arm))].map((arm) => {
    const lines = thin.filter((line) => line.arm === arm);
    // Only where every seed is: else the mean would jump when one seed is ahead of the others.
    const values = steps.map((_, at) => {
      const here = lines.map((line) => line.values[at]);
      return here.includes(null) ? null : here.reduce((sum, value) => sum + value, 0) / here.length;
    });
    return { arm, mean: true, label: seen.looks[arm].arm, values };
  });
  return { steps, lines: [...thin, ...thick] };
}

function drawLegend() {
  const away = hidden();
  const toggle = (at) => {
    const next = hidden();
    if (!next.delete(at)) next.add(at);
    go({ hide: [...next].sort().join(",") || undefined }, { replace: true });
  };
  const focused = document.activeElement?.dataset?.arm;
  fill(byId("legend"), seen.looks.map((look, at) =>
    h("button", { type: "button", class: "arm", "data-arm": at, "aria-pressed": String(!away.has(at)), onclick: () => toggle(at) },
      swatch(look), look.arm, look.control ? h("small", {}, " control") : null)),
  h("span", { class: "muted" }, `by optimizer step${seen.every > 1 ? `, 1 of ${seen.every} drawn` : ""}; thin a seed, thick the mean of the seeds`));
  if (focused) byId("legend").querySelector(`[data-arm="${focused}"]`)?.focus();
}

const swatch = (look) => s("svg", { class: "swatch", viewBox: "0 0 28 8", "aria-hidden": "true" },
  s("line", { x1: 1, y1: 4, x2: 27, y2: 4, class: look.hue === null ? "control" : `hue-${look.hue}`, "stroke-dasharray": look.dash.join(" ") }));

