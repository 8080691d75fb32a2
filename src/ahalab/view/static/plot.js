// One chart by uPlot.

import { fill, h } from "./dom.js";
import { brief, number, percent } from "./format.js";
import uPlot from "./vendor/uplot/uPlot.esm.js";

const HEIGHT = 170;
const together = uPlot.sync("steps"); // the cursor stands at the same step in every chart

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const hue = (look) => colour(look.hue === null ? "--control" : `--arm-${look.hue}`);
const write = (figure, value) => (figure.unit === "%" ? percent(value) : number(value));

/**
 * Draw a chart, or draw it again where its lines, width or colours are others.
 * @param span first and last step of all charts, which share one axis
 */
export function redraw(chart, { steps, lines }, looks, span) {
  const width = chart.plot.clientWidth;
  if (!width) return;
  const form = JSON.stringify([width, lines.map((line) => [line.label, line.mean])]);
  chart.span = span;
  const values = [steps, ...lines.map((line) => line.values)];
  if (chart.form === form) {
    chart.drawn.setData(values);
  } else {
    chart.drawn?.destroy();
    chart.form = form;
    chart.lines = lines;
    chart.drawn = paint(chart, values, looks, width);
  }
  chart.lines = lines;
  tell(chart, looks, null);
}

function paint(chart, values, looks, width) {
  const muted = colour("--muted");
  const line = colour("--line");
  const font = "11px system-ui, sans-serif";
  const share = chart.figure.unit === "%";
  const axis = { stroke: muted, font, ticks: { show: false }, grid: { stroke: line, width: 1 } };
  return new uPlot({
    width,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: together.key }, points: { size: 5 }, drag: { x: false, y: false }, y: false },
    scales: { x: { time: false, range: () => across(chart.span) }, y: { range: (_, low, high) => bounds(low, high, share) } },
    axes: [
      { ...axis, size: 26, space: 60, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000] },
      { ...axis, size: 50, space: 32, values: (_, ticks) => ticks.map((tick) => (share ? `${+(100 * tick).toFixed(1)} %` : brief(tick))) },
    ],
    series: [{}, ...chart.lines.map((one) => ({
      stroke: hue(looks[one.arm]) + (one.mean ? "" : "80"),
      width: one.mean ? 2.2 : 0.9,
      dash: one.mean ? looks[one.arm].dash.map((length) => 1.4 * length) : [],
      points: { show: values[0].length === 1 || chart.figure.key.startsWith("validation:") },
      spanGaps: true,
    }))],
    hooks: { setCursor: [(drawn) => tell(chart, looks, drawn.cursor.idx)] },
  }, values, chart.plot);
}

/** The shared axis of steps; a single step stands in its middle. */
const across = ([first, last]) => (first === last ? [first - 1, last + 1] : [first, last]);

/** A little air around the values; shares never leave 0 to 100 %. */
function bounds(low, high, share) {
  if (low === null || high === null) return [0, 1];
  const air = (high - low || Math.abs(high) || 1) * 0.08;
  return share ? [Math.max(0, low - air), Math.min(1, high + air) || 1] : [low - air, high + air];
}

/** Write the means under the chart: at the cursor's step, or the latest. */
function tell(chart, looks, at) {
  const steps = chart.drawn?.data[0] ?? [];
  const means = chart.lines.filter((line) => line.mean);
  const seeds = (arm) => chart.lines.filter((line) => !line.mean && line.arm === arm).length;
  const shown = means.map((line) => {
    let place = at;
    if (at === null || at === undefined) for (place = steps.length - 1; place > 0 && line.values[place] === null; place -= 1);
    return { line, value: line.values[place] ?? null, step: steps[place] };
  });
  const step = at === null || at === undefined ? "last" : `step ${steps[at]}`;
  fill(chart.values, h("span", { class: "muted" }, step), shown.map(({ line, value }) =>
    h("span", { title: `${line.label}, mean of ${seeds(line.arm)}` },
      h("i", { class: `key ${looks[line.arm].hue === null ? "control" : `hue-${looks[line.arm].hue}`}`, "aria-hidden": "true" }),
      h("span", { class: "away" }, `${line.label} `), write(chart.figure, value))));
  if (at === null || at === undefined) {
    const told = shown.map(({ line, value, step: last }) => `${line.label} ${write(chart.figure, value)} at step ${last}`);
    chart.plot.setAttribute("aria-label", `${chart.figure.title}, mean of the seeds by step: ${told.join("; ") || "nothing shown"}`);
  }
}
