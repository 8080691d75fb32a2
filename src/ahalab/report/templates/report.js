"use strict";
// Lists, filters and pages the answers. Foreign text enters the page as text only.
(() => {
  const PAGE = 20;
  const OPEN_CTL = "\u0001", OPEN_CUT = "\u0002", CLOSE = "\u0003";
  const block = document.getElementById("ahalab-answers");
  if (!block) return;
  const held = JSON.parse(block.textContent);
  const CORRECT = held.outcomes.indexOf("correct");
  const [form, pager, count, previous, next, open, list, heading] =
    ["filters", "pager", "count", "previous", "next", "open", "cards", "h-answers"]
      .map((id) => document.getElementById(id));
  const fields = ["arm", "seed", "metric", "change", "kind", "text"];
  const usual = form.elements.metric.value;
  const lower = held.texts.map((text) => text.replace(/[\u0001-\u0003]/g, "").toLowerCase());
  let found = [];
  let page = 0;

  // Every pair of answers; an answer is [sample, text, extracted, rule, strict, lenient].
  const pairs = held.adapters.flatMap((adapter) => held.questions.flatMap((question, at) =>
    adapter.answers[at].flatMap((own) => {
      const base = held.base[at].find((answer) => answer[0] === own[0]);
      return base ? [{ adapter, question, base, own }] : [];
    })));

  function change(pair, metric) {
    const place = metric === "strict" ? 4 : 5;
    const before = pair.base[place] === CORRECT, after = pair.own[place] === CORRECT;
    return before === after ? (after ? "both right" : "both wrong") : (after ? "gained" : "lost");
  }

  function kind(pair, metric) {
    return pair.adapter.kinds[`${pair.question[0]} ${pair.own[0]} ${metric}`] || "";
  }

  function matches(pair, wanted) {
    if (wanted.arm && pair.adapter.arm !== wanted.arm) return false;
    if (wanted.seed && String(pair.adapter.seed) !== wanted.seed) return false;
    const is = change(pair, wanted.metric);
    if (wanted.change === "changed" ? is.startsWith("both") : wanted.change && is !== wanted.change) return false;
    if (wanted.kind && kind(pair, wanted.metric) !== wanted.kind) return false;
    if (!wanted.text) return true;
    return pair.question[0].toLowerCase().includes(wanted.text) ||
      [pair.question[1], pair.question[2], pair.base[1], pair.own[1]].some((at) => lower[at].includes(wanted.text));
  }

  function make(tag, style, ...children) {
    const element = document.createElement(tag);
    if (style) element.className = style;
    element.append(...children);
    return element;
  }

  // What cannot be seen was written out already, between marks: those pieces are set apart.
  function foreign(at) {
    if (at < 0) return [make("i", "", "none")];
    return held.texts[at].split(/([\u0001\u0002][^\u0003]*\u0003)/).filter(Boolean).map((piece) => {
      if (piece[0] === OPEN_CTL) return make("b", "ctl", piece.slice(1, -1));
      if (piece[0] === OPEN_CUT) return make("i", "cut", piece.slice(1, -1));
      return piece;
    });
  }

  function side(name, answer) {
    const small = make("small", "", "extracted: ", make("bdi", "", ...foreign(answer[2])), ", by the rule ", ...foreign(answer[3]));
    return make("div", "", make("h4", "", `${name} `, small), make("pre", "", ...foreign(answer[1])));
  }

  function outcome(pair, metric) {
    const place = metric === "strict" ? 4 : 5;
    const why = kind(pair, metric);
    return `${metric}: ${held.outcomes[pair.base[place]]} → ${held.outcomes[pair.own[place]]}${why ? ` (${why})` : ""}`;
  }

  function card(pair, metric) {
    const is = change(pair, metric);
    const { arm, seed } = pair.adapter;
    const details = make("details", "",
      make("summary", "", make("span", `tag ${is.replace(" ", "-")}`, `${metric} ${is}`),
        make("span", "who", `${arm}, seed ${seed}`),
        make("span", "q", ...foreign(pair.question[1]))));
    details.addEventListener("toggle", () => {
      if (!details.open || details.children.length > 1) return;
      const place = held.samples > 1 ? `${pair.question[0]}, sample ${pair.own[0]}` : pair.question[0];
      const ask = make("dl", "ask");
      for (const [name, value] of [["Question", foreign(pair.question[1])], ["Gold", foreign(pair.question[2])],
        ["Outcome", [`${outcome(pair, "strict")}; ${outcome(pair, "lenient")}`]], ["Prompt", [make("code", "", place)]]]) {
        ask.append(make("dt", "", name), make("dd", "text", ...value));
      }
      details.append(ask, make("div", "two", side("Base", pair.base), side("Adapter", pair.own)));
    });
    return make("li", "card", details);
  }

  function show() {
    const first = page * PAGE;
    const last = Math.min(first + PAGE, found.length);
    list.replaceChildren(...found.slice(first, last).map((pair) => card(pair, form.elements.metric.value)));
    count.textContent = found.length
      ? `${(first + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${found.length.toLocaleString("en")} pairs${held.sampled ? " in the sample on this page" : ""}`
      : "No pair of answers on this page fits.";
    previous.disabled = page === 0;
    next.disabled = last >= found.length;
    open.disabled = found.length === 0;
  }

  function wanted() {
    const values = Object.fromEntries(fields.map((name) => [name, form.elements[name].value]));
    return { ...values, text: values.text.trim().toLowerCase() };
  }

  function filter() {
    const asked = wanted();
    found = pairs.filter((pair) => matches(pair, asked));
    page = 0;
    show();
  }

  // The filters stand in the address, so that what one looks at can be passed on.
  function remember() {
    const query = new URLSearchParams(fields.map((name) => [name, form.elements[name].value]).filter(([, value]) => value));
    history.replaceState(null, "", `#answers?${query}`);
  }

  function openAll(wish) {
    for (const details of list.querySelectorAll("details")) details.open = wish;
  }

  // #answers?arm=...&change=...: a count leads to the answers behind it.
  function follow() {
    const [target, query] = location.hash.slice(1).split("?");
    if (target !== "answers" || query === undefined) return;
    const values = new URLSearchParams(query);
    for (const name of fields) form.elements[name].value = values.get(name) || (name === "metric" ? usual : "");
    filter();
    openAll(true);
    heading.focus({ preventScroll: true });
    heading.scrollIntoView();
  }

  function turn(by) {
    page += by;
    show();
    pager.scrollIntoView({ block: "nearest" });
  }

  form.hidden = false;
  pager.hidden = false;
  form.elements.change.value = "changed";
  form.addEventListener("input", () => { filter(); remember(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  previous.addEventListener("click", () => turn(-1));
  next.addEventListener("click", () => turn(1));
  open.addEventListener("click", () => openAll(!Array.from(list.querySelectorAll("details")).every((details) => details.open)));
  // A second click on the same count leaves the address as it is, and must still lead there.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (link && link.getAttribute("href") === location.hash) follow();
  });
  addEventListener("hashchange", follow);
  filter();
  follow();
})();
