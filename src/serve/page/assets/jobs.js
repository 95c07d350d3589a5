// The scheduled jobs: the next run of each job, its history, and a button to run it now.

import { get, path, post } from "./api.js";
import { listen } from "./bell.js";
import { announce, el, folded, show, throttled } from "./dom.js";
import { entitle } from "./waiting.js";
import { away, clock, took, zoned } from "./words.js";

/** Shows the page of the jobs. */
export function jobs(main) {
  entitle("Jobs");
  const [list, own] = [el("ul.cards"), el("ul.cards")];
  const fault = el("p.bad", { role: "alert", hidden: true });
  show(
    main,
    el("h1", { tabindex: "-1" }, "Jobs"),
    el("p.faint", {}, "Tasks of the project that have a schedule. The server runs each when it is due."),
    fault,
    list,
    el("details.system", { open: true }, el("summary", {}, "System"), el("p.faint", {}, "Built-in jobs of fledge."), own),
  );
  const cards = new Map();
  const load = throttled(async () => {
    try {
      const found = await get("/v1/jobs");
      fault.hidden = true;
      put([list, own], cards, found.jobs, load);
    } catch (error) {
      show(fault, error.message);
      fault.hidden = false;
    }
  }, 500);
  load();
  const stop = listen((news) => ["job", "reset"].includes(news.type) && load());
  const clockwork = setInterval(load, 30_000);
  return () => {
    stop();
    clearInterval(clockwork);
  };
}

function put([list, own], cards, found, load) {
  const names = new Set(found.map(({ name }) => name));
  for (const [name, card] of cards) {
    if (names.has(name)) continue;
    card.element.remove();
    cards.delete(name);
  }
  const hasTasks = found.some(({ kind }) => kind === "task");
  if (!hasTasks) show(list, el("li.faint", {}, "No task has a schedule. Add ", el("code", {}, "schedule: \"0 3 * * *\""), " to the front matter of a task."));
  else list.querySelector(":scope > .faint")?.remove();
  for (const job of found) {
    if (!cards.has(job.name)) {
      const card = new Card(job.name, load);
      cards.set(job.name, card);
      (job.kind === "task" ? list : own).append(card.element);
    }
    cards.get(job.name).put(job);
  }
}

const STATES = { running: ["▶", "busy"], idle: ["○", "faint"], disabled: ["–", "faint"] };

function isDue(time) {
  return Date.parse(time) < Date.now() + 1000;
}

class Card {
  constructor(name, load) {
    this.name = name;
    this.load = load;
    this.facts = el("p.facts");
    this.last = el("p");
    this.fault = el("p.bad", { role: "alert", hidden: true });
    this.button = el("button", { type: "button", "aria-label": `Run ${name} now`, onclick: () => this.run() }, "Run now");
    const past = folded("History", () => this.history());
    this.element = el("li.card", {}, el("div.line", {}, el("h2", {}, name), this.button), this.facts, this.last, this.fault, past);
  }

  put({ schedule, zone, next_at, last, state, monitor, fault }) {
    const [shape, tone] = STATES[state] ?? STATES.idle;
    this.button.disabled = state !== "idle";
    if (this.facts.contains(document.activeElement) || this.last.contains(document.activeElement)) return; // the user is here
    show(
      this.facts,
      el("span", { class: tone }, `${shape} ${state}`),
      schedule ? [" · ", el("code", {}, schedule), zoned(schedule, zone)] : "",
      next_at ? [" · ", el("time", { datetime: next_at, title: clock(next_at) }, isDue(next_at) ? "due now" : `next ${away(next_at)}`)] : "",
      monitor ? [" · ", el("a", { href: `#/monitors/${encodeURIComponent(monitor)}` }, "monitor")] : "",
    );
    show(this.last, fault ? el("span.bad", {}, fault) : last ? outcome(last) : el("span.faint", {}, "has not run yet"));
  }

  async run() {
    this.button.disabled = true;
    try {
      await post(path("jobs", this.name, "run"));
      this.fault.hidden = true;
      announce(`${this.name} runs`);
    } catch (error) {
      show(this.fault, error.message);
      this.fault.hidden = false;
    }
    this.load();
  }

  history() {
    const box = el("div", {}, el("p.faint", {}, "Loading…"));
    get(`${path("jobs", this.name, "history")}?limit=20`).then(
      (found) => {
        const items = found.runs.map((entry) => el("li", {}, outcome(entry)));
        show(box, items.length ? el("ul.plain", {}, items) : el("p.faint", {}, "Nothing yet."));
      },
      (error) => show(box, el("p.bad", {}, error.message)),
    );
    return box;
  }
}

const OUTCOMES = { running: ["▶", "busy"], ok: ["✓", "good"], skipped: ["–", "faint"], interrupted: ["‖", "warn"] };

/** Shows one run of a job: shape, word, time, duration, error, and the run. */
function outcome({ state, began_at, ended_at, tries, count, error, run }) {
  const [shape, tone] = OUTCOMES[state] ?? ["✕", "bad"];
  const lasted = ended_at ? Date.parse(ended_at) - Date.parse(began_at) : null;
  return [
    el("span", { class: tone }, `${shape} ${state}${count > 1 ? `, ${count} times` : ""} `),
    el("time.faint", { datetime: began_at, title: clock(began_at) }, away(began_at)),
    lasted === null ? "" : el("span.faint", {}, ` · ${took(Math.max(lasted, 0))}`),
    tries > 1 ? el("span.faint", {}, ` · ${tries} tries`) : "",
    run ? [" · ", el("a", { href: `#/runs/${run}` }, "run")] : "",
    error ? ` – ${error}` : "",
  ];
}
