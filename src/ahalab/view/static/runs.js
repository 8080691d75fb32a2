// All studies: what runs, how far it is, and whether it still moves.

import { addressOf } from "./address.js";
import { ask, every } from "./api.js";
import { fill, h } from "./dom.js";
import { count, duration, many, number, percent, UNKNOWN } from "./format.js";
import { failed, tell } from "./tell.js";

export const title = "Runs";

const SIGNS = { waiting: "○", running: "●", stale: "▲", stopped: "■", done: "✓" };

export async function start(main) {
  fill(main, h("h1", { class: "away" }, "Studies"), h("div", { id: "studies" }, h("p", { class: "empty" }, "Reading …")));
  const look = async () => {
    const found = await ask("/studies", {}, { poll: true });
    if (found) show(found);
    else tell("");
  };
  await every(2000, look, failed);
}

function show({ studies, broken, faults }) {
  const faulty = [...broken, ...faults].map((fault) => h("p", { class: "notice bad" }, fault));
  const none = studies.length || faulty.length ? null : h("p", { class: "empty" }, "The index is being made …");
  fill(document.getElementById("studies"), faulty, studies.map(study), none);
  const open = studies.flatMap((one) => one.runs).filter((run) => run.status === "running").length;
  tell(open ? `${many(open, "run")} going on` : "");
}

function study(one) {
  const behind = one.rows < one.rows_total;
  const link = (page, text) => h("a", { href: addressOf(one.id, page) }, text);
  return h("section", { class: "study-card", "aria-labelledby": `name-${one.id}` },
    h("div", { class: "head" },
      h("h2", { id: `name-${one.id}` }, one.name),
      h("span", { class: "pages" }, link("curves", "Curves"), link("steps", "Steps"), link("rollouts", "Rollouts"), link("compare", "Compare"))),
    h("p", { class: "meta" },
      h("span", {}, one.model), h("span", {}, one.task), h("span", {}, one.sealed ? "sealed" : "not sealed"),
      h("span", { class: "path" }, one.path)),
    behind ? h("p", { class: "notice" }, h("label", {}, `Indexing: ${count(one.rows)} of ${count(one.rows_total)} rows `,
      h("progress", { max: one.rows_total, value: one.rows }))) : null,
    one.faults.map((fault) => h("p", { class: "notice bad" }, fault)),
    h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Runs of ${one.name}` }, table(one)),
    one.sentences.length ? h("details", {}, h("summary", {}, "What the analysis says"),
      h("ul", { class: "sentences" }, one.sentences.map((sentence) => h("li", {}, sentence)))) : null);
}

function table(one) {
  const answers = new Map(one.answers.map((row) => [row.name, row]));
  const cell = (text, more = {}) => h("td", { class: "n", ...more }, text);
  const head = (text, hint, kind = "n") => h("th", { scope: "col", class: kind, title: hint }, text);
  const rows = one.runs.map((run, at) => {
    const eyed = answers.get(run.name);
    const latest = run.latest ?? {};
    return h("tr", { class: run.arm === one.runs[at - 1]?.arm ? null : "arm-start" },
      h("th", { scope: "row" }, h("a", { href: addressOf(one.id, "steps", { run: run.name }) }, `${run.arm} · ${run.seed}`),
        run.control ? h("small", {}, " control") : null),
      h("td", {}, status(run.status, run.why)),
      h("td", { class: "progress" }, h("progress", { max: run.steps_planned, value: run.steps, "aria-label": `Steps of ${run.name}` }),
        h("span", {}, `${count(run.steps)}/${count(run.steps_planned)}`)),
      cell(run.status === "running" ? duration(run.left_seconds) : run.idle_seconds === null ? "" : `${duration(run.idle_seconds)} ago`),
      cell(number(latest.reward)), cell(percent(latest.strict)), cell(percent(latest.dead)), cell(percent(latest.truncated)),
      h("td", { class: run.alarms.length ? "alarms" : "muted" }, run.alarms.length ? run.alarms.join(", ") : run.status === "done" ? "none" : UNKNOWN),
      ...evaluation(one, eyed));
  });
  const others = one.answers.filter((row) => !row.name.startsWith("arms/")).map((row, at) =>
    h("tr", { class: at ? null : "arm-start" }, h("th", { scope: "row" }, row.name === "floor" ? "base, second batch plan" : row.name),
      h("td", { colspan: "8", class: "muted" }, row.name === "floor" ? "noise floor" : ""), ...evaluation(one, row)));
  return h("table", {},
    h("thead", {}, h("tr", {}, h("td", {}), h("th", { colspan: "8", scope: "colgroup" }, "Training"),
      h("th", { colspan: "3", scope: "colgroup", class: "evaluated" }, "Evaluation")),
    h("tr", {},
      head("Arm · seed", "", ""), head("Status", "", ""), head("Steps", "", ""), head("Left", "time left, or the last commit"),
      head("Reward", "mean of the last step"), head("Strict", "of the last step's rollouts"), head("Dead", "groups of equal rewards"),
      head("Cut", "rollouts cut at the token limit"), head("Alarms", "", ""),
      head("Answers", "to the evaluation's questions", "evaluated"), head("Strict", "evaluation, in the asked format"), head("Lenient", "evaluation, wherever stated"))),
    h("tbody", {}, rows, others));
}

function evaluation(one, row) {
  const whole = row.answers_planned && row.answers >= row.answers_planned;
  const told = row.answers ? (whole ? count(row.answers) : `${count(row.answers)} of ${count(row.answers_planned)}`) : "";
  const compared = row.name.startsWith("arms/") && row.answers
    ? h("a", { href: addressOf(one.id, "compare", { cell: row.name }) }, told) : told;
  return [
    h("td", { class: "evaluated" }, row.status === "done" || row.status === "waiting" ? compared : [status(row.status, row.why), " ", compared]),
    h("td", { class: "n" }, row.answers ? percent(row.strict_fraction) : ""),
    h("td", { class: "n" }, row.answers ? percent(row.lenient_fraction) : ""),
  ];
}

function status(word, why) {
  return h("span", { class: `status ${word}`, title: why || null },
    h("span", { "aria-hidden": "true" }, `${SIGNS[word]} `), word,
    word === "stale" || word === "stopped" ? h("small", {}, ` ${why}`) : null);
}
