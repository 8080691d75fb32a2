"use strict";
// Filters and pages the changed responses. Without it, all of them are simply listed.
(() => {
  const PAGE = 25;
  const form = document.getElementById("filters");
  const pager = document.getElementById("pager");
  const count = document.getElementById("count");
  const previous = document.getElementById("previous");
  const next = document.getElementById("next");
  const open = document.getElementById("open");
  const cards = Array.from(document.querySelectorAll("#cards > .card"));
  const texts = cards.map((card) =>
    Array.from(card.querySelectorAll("dd, pre, .q"), (part) => part.textContent).join("\n").toLowerCase());
  const fields = ["arm", "seed", "metric", "change", "text"];
  let found = cards;
  let page = 0;

  function matches(card, at, wanted) {
    if (wanted.arm && card.dataset.arm !== wanted.arm) return false;
    if (wanted.seed && card.dataset.seed !== wanted.seed) return false;
    if (wanted.metric || wanted.change) {
      const keys = card.dataset.keys.split(" ").map((key) => key.split("-"));
      const hit = keys.some(([metric, change]) =>
        (!wanted.metric || metric === wanted.metric) && (!wanted.change || change === wanted.change));
      if (!hit) return false;
    }
    return !wanted.text || texts[at].includes(wanted.text);
  }

  function show() {
    const first = page * PAGE;
    const last = Math.min(first + PAGE, found.length);
    const visible = new Set(found.slice(first, last));
    for (const card of cards) card.hidden = !visible.has(card);
    count.textContent = found.length
      ? `${first + 1} to ${last} of ${found.length.toLocaleString("en")} shown`
      : "None fits these filters.";
    previous.disabled = page === 0;
    next.disabled = last >= found.length;
    open.disabled = found.length === 0;
  }

  function filter() {
    const wanted = Object.fromEntries(fields.map((name) => [name, form.elements[name].value]));
    wanted.text = wanted.text.trim().toLowerCase();
    found = cards.filter((card, at) => matches(card, at, wanted));
    page = 0;
    show();
  }

  // #changed?arm=...&seed=...: a count in a table leads to the answers behind it.
  function follow() {
    const [target, query] = location.hash.slice(1).split("?");
    if (target !== "changed" || query === undefined) return;
    const wanted = new URLSearchParams(query);
    for (const name of fields) form.elements[name].value = wanted.get(name) || "";
    filter();
    document.getElementById("changed").scrollIntoView();
  }

  function turn(by) {
    page += by;
    show();
    pager.scrollIntoView({ block: "nearest" });
  }

  if (cards.length === 0) return;
  form.hidden = false;
  pager.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  previous.addEventListener("click", () => turn(-1));
  next.addEventListener("click", () => turn(1));
  open.addEventListener("click", () => {
    const shown = cards.filter((card) => !card.hidden).map((card) => card.querySelector("details"));
    const all = shown.every((details) => details.open);
    for (const details of shown) details.open = !all;
  });
  addEventListener("hashchange", follow);
  filter();
  follow();
})();
