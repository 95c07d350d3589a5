// The row of a run in the list, with a cell for each fact, and the summary of a batch's rows.

import { inside } from "./project.js";
import { el, say, show } from "./dom.js";
import { away, clock, ended, many, money, standing, took } from "./words.js";

/** The columns after the title, in order: a class and a heading. */
export const COLUMNS = [
  ["word", "State"],
  ["task", "Task"],
  ["model", "Model"],
  ["branch", "Branch"],
  ["by", "Started by"],
  ["attempts", "Attempts"],
  ["age", "Began · took"],
  ["cost", "Cost"],
];

/** Returns the headings of the columns. */
export function headings() {
  return el("div.columns", { "aria-hidden": "true" }, el("span"), el("span", {}, "Run"), COLUMNS.map(([name, word]) => el(`span.${name}`, {}, word)));
}

/** Describes the origin of a run. */
export function starter(by) {
  if (by?.kind === "schedule") return `schedule ${by.name}`;
  if (by?.kind === "batch") return `batch ${short(by.name)}`;
  if (by?.kind === "run") return `run ${by.name.slice(0, 8)}`;
  if (by?.kind === "key") return `key ${by.name}`;
  return { page: "this page", api: "API", command_line: "command line" }[by?.kind] ?? "";
}

/** Returns the part of a batch's name that differs between batches of the same tasks. */
function short(batch) {
  return batch.split("-").at(-1);
}

export class Row {
  constructor(run) {
    this.shape = el("span.shape", { "aria-hidden": "true" });
    this.title = el("span.title");
    this.cells = Object.fromEntries(COLUMNS.map(([name]) => [name, el(name === "age" ? "time.age" : `span.${name}`)]));
    this.element = el(
      "li",
      { "data-id": run.id, "data-at": run.started_at },
      el("a", { href: `#/runs/${run.id}` }, this.shape, this.title, Object.values(this.cells)),
    );
    this.put(run);
  }

  put(run) {
    this.run = run;
    const { shape, word, tone } = standing(run);
    this.shape.className = `shape ${tone}`;
    this.cells.word.className = `word ${tone}`;
    say(this.shape, shape);
    say(this.title, run.title || run.id);
    this.title.title = run.title ?? "";
    const place = run.machine && run.state !== "lost" ? `on ${run.machine}` : "";
    const doing = run.pending > 0 ? many(run.pending, "question") : run.state === "running" ? run.doing : place;
    this.cell("word", doing ? `${word} · ${doing}` : word);
    this.cell("task", run.source === "-" ? "" : inside(run.source));
    const models = run.models ?? [];
    this.cell("model", models.map((name) => name.split("/").at(-1)).join(", "), models.join(", "));
    this.cell("branch", run.branch);
    const by = run.started_by;
    this.cell("by", by?.kind === "batch" ? by.job : starter(by));
    const attempts = run.outcome?.attempts;
    this.cell("attempts", attempts ? String(attempts) : "", attempts ? many(attempts, "attempt") : "");
    this.cell("cost", money(run.outcome?.cost_micros));
    this.cells.age.dateTime = run.started_at ?? "";
    this.age();
  }

  cell(name, text, title = text) {
    say(this.cells[name], text);
    this.cells[name].title = title ?? "";
  }

  age() {
    const { started_at, outcome } = this.run;
    const lasted = outcome ? Date.parse(outcome.ended_at) - Date.parse(started_at) : null;
    const words = [away(started_at), lasted === null ? "" : took(Math.max(lasted, 0))].filter(Boolean).join(" · ");
    this.cell("age", words, clock(started_at));
  }
}

/** The listed runs of a batch. */
export class Batch {
  constructor(name, startedAt) {
    this.rows = new Set();
    this.summary = el("summary");
    this.list = el("ol.runs", { "aria-label": `Runs of batch ${short(name)}` });
    this.name = name;
    this.element = el("li.batch", { "data-at": startedAt }, el("details", { open: true }, this.summary, this.list));
  }

  /** Updates the summary of its runs. */
  sum() {
    const runs = [...this.rows].map(({ run }) => run);
    const words = new Map();
    for (const run of runs) {
      const { shape, word, tone } = run.outcome ? ended(run.outcome) : standing(run);
      const known = words.get(word) ?? { shape, tone, count: 0 };
      words.set(word, { ...known, count: known.count + 1 });
    }
    const costs = runs.map((run) => run.outcome?.cost_micros).filter((cost) => cost !== null && cost !== undefined);
    show(
      this.summary,
      el("strong", {}, `Batch ${short(this.name)}`),
      el("span.faint", {}, ` · ${many(runs.length, "run")}`),
      [...words].map(([word, { shape, tone, count }]) => [" · ", el("span", { class: tone }, `${shape} ${count} ${word}`)]),
      costs.length ? el("span.faint", {}, ` · ${money(costs.reduce((sum, cost) => sum + cost, 0))}`) : "",
    );
  }
}
