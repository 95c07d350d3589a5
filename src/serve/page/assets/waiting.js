// The open questions of all runs: their number in the navigation and the title, and their page.

import { get, query } from "./api.js";
import { el, harmless, say, show, throttled } from "./dom.js";
import { listen } from "./bell.js";
import { project } from "./project.js";
import { Questions } from "./questions.js";

const MOST = 200;
let open = [];
let title = "";

/** Sets the page's title: the number of open questions, the name, then the project. */
export function entitle(name) {
  title = name;
  mark();
}

/** Updates the title and the number of open questions. */
export function mark() {
  const name = [title, project.name, "fledge"].filter(Boolean).map(harmless).join(" · ");
  const count = open.reduce((sum, run) => sum + run.pending, 0);
  const wanted = count ? `(${count}) ${name}` : name;
  if (document.title !== wanted) document.title = wanted;
  const badge = document.getElementById("waiting");
  badge.hidden = count === 0;
  say(badge, count || "");
  badge.setAttribute("aria-label", `${count} open`);
}

async function count() {
  const { runs } = await get(query("/v1/runs", { state: "running", limit: MOST })).catch(() => ({ runs: null }));
  if (runs === null) return;
  open = runs.filter((run) => run.pending > 0);
  mark();
  redraw?.();
}

let redraw = null;
const soon = throttled(count, 400);

/** Keeps the number up to date. */
export function watch() {
  soon();
  listen((news) => {
    if (["run", "confirmation", "reset"].includes(news.type)) soon();
  });
}

/** Shows the page of open questions. */
export function waiting(main) {
  entitle("Waiting");
  const none = el("p.faint", {}, "Nothing waits for you.");
  const list = el("div");
  show(main, el("h1", { tabindex: "-1" }, "Waiting for you"), none, list);
  const shown = new Map();
  redraw = () => {
    const ids = new Set(open.map(({ id }) => id));
    for (const [id, questions] of shown) {
      if (!ids.has(id)) {
        questions.element.remove();
        shown.delete(id);
      }
    }
    for (const { id, title: name } of open) {
      if (!shown.has(id)) {
        const questions = new Questions(id, { title: name, changed: soon });
        shown.set(id, questions);
        list.append(questions.element);
      }
      shown
        .get(id)
        .refresh()
        .catch(() => {});
    }
    none.hidden = open.length > 0;
  };
  redraw();
  soon();
  return () => (redraw = null);
}
