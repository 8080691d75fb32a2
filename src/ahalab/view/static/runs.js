// All studies: what runs, how far it is, and whether it still moves.

import { addressOf } from "./address.js";
import { ask, every } from "./api.js";
import { fill, h } from "./dom.js";
import { count, duration, many, number, percent, UNKNOWN } from "./format.js";
import { titleOf } from "./sets.js";
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
  const before = kept();
  const none = studies.length || faulty.length ? null : h("p", { class: "empty" }, "The index is being made …");
  fill(document.getElementById("studies"), faulty, studies.map(study), none);
  restore(before);
  const open = studies.flatMap((one) => one.runs).filter((run) => run.status === "running").length;
  tell(open ? `${many(open, "run")} going on` : "");
}

/** What a reader did to the page, which drawing it again would undo. */
function kept() {
  const box = document.getElementById("studies");
  const focused = box.contains(document.activeElement) ? document.activeElement : null;
  return {
    open: [...box.querySelectorAll("details[open]")].map((details) => details.id),
    scrolled: [...box.querySelectorAll(".scroll")].map((region) => [region.id, region.scrollLeft]),
    focused: focused && (focused.id ? `[id="${focused.id}"]` : focused.matches("summary") ? `[id="${focused.parentElement.id}"] > summary`
      : `a[href="${CSS.escape(focused.getAttribute("href") ?? "")}"]`),
  };
}

function restore({ open, scrolled, focused }) {
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  for (const [id, left] of scrolled) if (left) document.getElementById(id)?.scrollTo(left, 0);
  if (focused) document.querySelector(`#studies ${focused}`)?.focus({ preventScroll: true });
}

function study(one) {
  const behind = one.rows < one.rows_total;
  const link = (page, text) => h("a", { href: addressOf(one.id, page) }, text);
  return h("section", { class: "study-card", "aria-labelledby": `name-${one.id}` },
    h("div", { class: "head" },
      h("h2", { id: `name-${one.id}` }, one.name),
      h("span", { class: "pages" }, link("curves", "Curves"), link("steps", "Steps"), link("rollouts", "Rollouts"), link("answers", "Answers"), link("compare", "Compare"))),
    h("p", { class: "meta" },
      h("span", {}, one.model), h("span", {}, one.task), h("span", {}, one.sealed ? "sealed" : "not sealed"),
      h("span", { class: "path" }, one.path)),
    behind ? h("p", { class: "notice" }, h("label", {}, `Indexing: ${count(one.rows)} of ${count(one.rows_total)} rows `,
      h("progress", { max: one.rows_total, value: one.rows }))) : null,
    one.faults.slice(0, 2).map((fault) => h("p", { class: "notice bad" }, fault)),
    one.faults.length > 2 ? h("details", { id: `faults-${one.id}` }, h("summary", {}, `${one.faults.length - 2} more files can't be read`),
      one.faults.slice(2).map((fault) => h("p", { class: "notice bad" }, fault))) : null,
    warnings(one),
    h("div", { class: "scroll", id: `runs-${one.id}`, role: "region", tabindex: "0", "aria-label": `Runs of ${one.name}` }, table(one)),
    besides(one),
    one.sentences.length ? h("details", { id: `says-${one.id}` }, h("summary", {}, "What the analysis says"),
      h("ul", { class: "sentences" }, one.sentences.map((sentence) => h("li", {}, sentence)))) : null);
}

/** What does not move although it is not done: each stale one by name, the stopped ones together. */
function warnings(one) {
  const written = one.answers.filter((row) => row.kind !== "validation"); // that one is the run's own
  const parts = [...one.runs, ...written.map((row) => ({ ...row, name: `answers of ${titleOf(row)}` }))];
  const stale = parts.filter((part) => part.status === "stale");
  const stopped = parts.filter((part) => part.status === "stopped");
  const names = stopped.length <= 3 ? stopped.map((part) => part.name).join(", ") : `${stopped.length} of ${parts.length} runs and answer sets`;
  return [
    stale.map((part) => h("p", { class: "notice bad" }, h("b", {}, "Stale: "), `${part.name}: ${part.why}`)),
    stopped.length ? h("p", { class: "notice" }, h("b", {}, "Stopped: "), `${names}: ${stopped[0].why}`) : null,
  ];
}

function table(one) {
  const answers = new Map(one.answers.map((row) => [row.name, row]));
  const validated = one.answers.some((row) => row.kind === "validation");
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
      cell(when(run)),
      cell(number(latest.reward)), cell(percent(latest.strict)), cell(percent(latest.dead)), cell(percent(latest.truncated)),
      validated ? validation(one, answers.get(`${run.name}/validation`)) : null,
      h("td", { class: run.alarms.length ? "alarms" : "muted" }, run.alarms.length ? run.alarms.join(", ") : run.status === "done" ? "none" : UNKNOWN),
      ...evaluation(one, eyed));
  });
  const wide = validated ? 9 : 8; // columns of the training
  const others = one.answers.filter(ofBase).map((row, at) =>
    h("tr", { class: at ? null : "arm-start" }, h("th", { scope: "row" }, row.kind === "floor" ? "base, second batch plan" : row.name),
      h("td", { colspan: wide, class: "muted" }, row.kind === "floor" ? "noise floor" : ""), ...evaluation(one, row)));
  return h("table", {},
    h("thead", {}, h("tr", {}, h("td", {}), h("th", { colspan: wide, scope: "colgroup" }, "Training"),
      h("th", { colspan: "3", scope: "colgroup", class: "evaluated" }, "Evaluation")),
    h("tr", {},
      head("Arm · seed", "", ""), head("Status", "", ""), head("Steps", "", ""), head("Time", "time left, or since the last commit"),
      head("Reward", "mean of the last step"), head("Strict", "of the last step's rollouts"), head("Dead", "groups of equal rewards"),
      head("Cut", "rollouts cut at the token limit"),
      validated ? head("Validation", "strict, of the last checkpoint") : null, head("Alarms", "", ""),
      head("Answers", "to the evaluation's questions", "evaluated"), head("Strict", "evaluation, in the asked format"), head("Lenient", "evaluation, wherever stated"))),
    h("tbody", {}, rows, others));
}

const ofBase = (row) => (row.kind === "evaluation" && row.arm === null) || row.kind === "floor";

/** The strict accuracy of the last checkpoint, with a way to its answers. */
function validation(one, row) {
  if (!row?.steps.length) return h("td", { class: "n" }, "");
  const step = row.steps.at(-1);
  return h("td", { class: "n" }, h("a", {
    href: addressOf(one.id, "answers", { set: `${row.name}/step-${step}` }), title: `strict, at step ${step}; lenient ${percent(row.lenient_fraction)}`,
  }, percent(row.strict_fraction)));
}

/** What was answered beside the evaluation and the validation: replays, templates, reflection. */
function besides(one) {
  const rows = one.answers.filter((row) => !["evaluation", "floor", "validation"].includes(row.kind));
  if (!rows.length) return null;
  const words = [...new Set(rows.map((row) => ({ replay: "replays", template: "templates" }[row.kind] ?? "reflection")))];
  return h("details", { id: `besides-${one.id}` }, h("summary", {}, `${many(rows.length, "more set")} of answers: ${words.join(", ")}`),
    h("div", { class: "scroll", id: `besides-table-${one.id}`, role: "region", tabindex: "0", "aria-label": `More answers of ${one.name}` }, h("table", {},
      h("thead", {}, h("tr", {}, ["Answers of", "Number", "Strict", "Lenient"].map((text, at) => h("th", { scope: "col", class: at > 1 ? "n" : null }, text)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row" }, titleOf(row)), ...evaluation(one, row)))))));
}

function when(run) {
  if (run.status === "running" && run.left_seconds !== null) return `${duration(run.left_seconds)} left`;
  return run.idle_seconds === null ? "" : `${duration(run.idle_seconds)} ago`;
}

function evaluation(one, row) {
  const whole = row.answers_planned === null || row.answers >= row.answers_planned;
  const counts = row.answers && !["without", "kept"].includes(row.kind); // of those, only `ahalab reflect` can tell
  const told = row.answers ? (whole ? count(row.answers) : `${count(row.answers)} of ${count(row.answers_planned)}`) : "";
  const compared = row.answers ? h("a", { href: addressOf(one.id, "compare", { cell: row.name }) }, told) : told;
  return [
    h("td", { class: "evaluated" }, row.status === "done" || row.status === "waiting" ? compared : [status(row.status, row.why), " ", compared]),
    h("td", { class: "n" }, counts ? percent(row.strict_fraction) : ""),
    h("td", { class: "n" }, counts ? percent(row.lenient_fraction) : ""),
  ];
}

function status(word, why) {
  return h("span", { class: `status ${word}`, title: why || null },
    h("span", { "aria-hidden": "true" }, `${SIGNS[word]} `), word);
}
