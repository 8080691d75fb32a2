// Sets of answers by name: what they are called, and how they are offered.

const GROUPS = {
  evaluation: "Evaluation", floor: "Evaluation", validation: "Validation, by checkpoint", replay: "Replay",
  template: "Base under templates", without: "Answers with a marker, finished without it", kept: "The same, continued freely",
};

const side = (row) => (row.arm === null ? "base" : `${row.arm} · ${row.seed}`);

/** What a file of answers is called; with a step, one checkpoint of a validation. */
export function titleOf(row, step = null) {
  const at = step === null ? "" : ` at step ${step}`;
  switch (row.kind) {
    case "floor": return "base again (noise floor)";
    case "replay": return `${side(row)}, replayed`;
    case "template": return `template ${row.name.replace("templates/", "")}`;
    case "validation": return `${side(row)}, validation${at}`;
    case "without": return `${side(row)}, finished without its marker`;
    case "kept": return `${side(row)}, continued freely`;
    default: return side(row);
  }
}

/** Every set that the plan names or that has answers: { name, title, row }. A validation has one for each checkpoint. */
export function setsOf(rows) {
  return rows.flatMap((row) => (row.kind === "validation"
    ? row.steps.map((step) => ({ name: `${row.name}/step-${step}`, title: titleOf(row, step), row }))
    : [{ name: row.name, title: titleOf(row), row }]));
}

/** Every file with answers, named as sets are. */
export const filesOf = (rows) => rows.filter((row) => row.answers).map((row) => ({ name: row.name, title: titleOf(row), row }));

/** Options for a chooser, in groups: [[group, [[value, text], ...]], ...]. */
export function grouped(sets) {
  const found = new Map();
  for (const { name, title, row } of sets) {
    const group = GROUPS[row.kind];
    if (!found.has(group)) found.set(group, []);
    found.get(group).push([name, title]);
  }
  return [...found];
}
