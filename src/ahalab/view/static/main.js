// Starts the page that the address names.

import { addressOf, forgetToken, place } from "./address.js";
import { ask } from "./api.js";
import { byId, fill, h } from "./dom.js";
import { keys } from "./keys.js";
import { failed } from "./tell.js";

const PAGES = [
  ["curves", "Curves"],
  ["steps", "Steps"],
  ["rollouts", "Rollouts"],
  ["answers", "Answers"],
  ["compare", "Compare"],
];

forgetToken();
const here = place();
const main = byId("main");

async function start() {
  const { start: begin, title, actions } = await import(`./${here.page}.js`);
  keys(actions ?? {});
  if (here.study) await name(title);
  else document.title = "Runs · Aha Lab";
  await begin(main, here.study);
}

async function name(title) {
  const links = PAGES.map(([page, text]) =>
    h("a", { href: addressOf(here.study, page), "aria-current": page === here.page ? "page" : null }, text));
  fill(byId("nav"), h("span", { class: "study" }, "…"), links);
  const study = await ask(`/study/${here.study}`);
  document.title = `${title} · ${study.name} · Aha Lab`;
  fill(byId("nav").firstChild, study.name);
}

start().catch((error) => {
  failed(error);
  fill(main, h("p", { class: "empty" }, error.message));
});
