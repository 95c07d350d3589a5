// The list of runs: searchable, filterable, updated in place, grouped by batch. The layout of each
// row is independent, so rows outside the view cost nothing.

import { get, query } from "./api.js";
import { listen } from "./bell.js";
import { el, show, throttled } from "./dom.js";
import { Batch, headings, Row } from "./row.js";
import { entitle } from "./waiting.js";

const FIRST = 50;
const MORE = 100;
const STATES = [
  ["", "All"],
  ["queued", "Queued"],
  ["running", "Running"],
  ["verified", "Verified"],
  ["failed", "Failed"],
  ["interrupted", "Interrupted"],
  ["lost", "Lost"],
];

/** Shows the page of the list; `given` is the query of its address. */
export function runs(main, given) {
  entitle("Runs");
  const page = new List(given);
  show(main, page.element);
  page.load();
  const stop = listen((news) => {
    if (["run", "confirmation", "reset"].includes(news.type)) page.refresh();
  });
  const clockwork = setInterval(() => {
    page.rows.forEach((row) => row.age());
    // The server sends no news when another machine falls silent, so its runs are polled.
    if ([...page.rows.values()].some(({ run }) => run.machine && ["running", "lost"].includes(run.state))) page.refresh();
  }, 30_000);
  const sight = new IntersectionObserver((seen) => seen.some((entry) => entry.isIntersecting) && page.more(), { rootMargin: "600px" });
  // The observer restarts with each page: it would miss an end of the list that stays in view.
  page.appended = () => {
    sight.unobserve(page.next);
    sight.observe(page.next);
  };
  return () => {
    stop();
    clearInterval(clockwork);
    sight.disconnect();
    page.abort.abort();
  };
}

class List {
  constructor(given) {
    this.filter = { state: given.get("state") ?? "", q: given.get("q") ?? "" };
    this.rows = new Map();
    this.batches = new Map();
    this.before = null;
    this.busy = false;
    this.abort = new AbortController();
    this.list = el("ol.runs", { "aria-label": "Runs, newest first" });
    this.empty = el("p.faint", { hidden: true });
    this.fault = el("p.bad", { role: "alert", hidden: true });
    this.next = el("button", { type: "button", hidden: true, onclick: () => this.more() }, "Older runs");
    this.refresh = throttled(() => this.head(), 500);
    this.element = el(
      "div",
      {},
      el("h1", { tabindex: "-1" }, "Runs"),
      this.form(),
      this.fault,
      headings(),
      this.list,
      this.empty,
      el("p.more", {}, this.next),
    );
  }

  form() {
    const state = el(
      "select",
      { name: "state" },
      STATES.map(([value, word]) => el("option", { value, selected: value === this.filter.state }, word)),
    );
    const hint = "Title, task, model, branch, starter, id…";
    const search = el("input", { type: "search", name: "q", placeholder: hint, value: this.filter.q, autocomplete: "off" });
    const change = throttled(() => {
      this.filter = { state: state.value, q: search.value.trim() };
      history.replaceState(null, "", query("#/runs", this.filter));
      this.load();
    }, 200);
    state.addEventListener("change", change);
    search.addEventListener("input", change);
    return el(
      "form.filter",
      { role: "search", onsubmit: (event) => event.preventDefault() },
      el("label", {}, el("span", {}, "State"), state),
      el("label.grow", {}, el("span", {}, "Search"), search),
    );
  }

  address(limit, before) {
    const { state, q } = this.filter;
    const isOutcome = state === "verified" || state === "failed";
    return query("/v1/runs", { limit, before, q, state: isOutcome ? "ended" : state, outcome: isOutcome ? state : "" });
  }

  /** Loads the list from its start. */
  async load() {
    this.abort.abort();
    this.abort = new AbortController();
    const found = await this.ask(FIRST, null);
    if (!found) return;
    this.rows.clear();
    this.batches.clear();
    this.list.replaceChildren();
    this.append(found);
    performance.mark("runs are there");
    const { state, q } = this.filter;
    this.empty.hidden = found.runs.length > 0;
    show(this.empty, state || q ? "No matching runs." : ["No run yet. ", el("a", { href: "#/new" }, "Begin one"), "."]);
  }

  async more() {
    if (this.before === null || this.busy) return;
    this.busy = true;
    const found = await this.ask(MORE, this.before);
    this.busy = false;
    if (found) this.append(found);
  }

  /** Fetches the newest runs again, updates known rows in place, and adds new rows at the top. */
  async head() {
    const found = await this.ask(FIRST, null);
    if (!found) return;
    if (this.rows.size === 0 && found.runs.length > 0) this.empty.hidden = true;
    for (const run of found.runs) {
      const known = this.rows.get(run.id);
      if (known) known.put(run);
      else this.add(run);
    }
    if (this.filter.state) this.leave(new Set(found.runs.map(({ id }) => id)), found);
    this.batches.forEach((batch) => batch.sum());
  }

  /** Removes rows that no longer match the filter, judging by the newest runs. */
  leave(ids, { runs: found, next }) {
    const oldest = next === null ? "" : (found.at(-1)?.started_at ?? "");
    for (const [id, row] of this.rows) {
      if (ids.has(id) || row.run.started_at < oldest) continue;
      row.element.remove();
      this.rows.delete(id);
      for (const [name, batch] of this.batches) {
        if (!batch.rows.delete(row) || batch.rows.size) continue;
        batch.element.remove();
        this.batches.delete(name);
      }
    }
  }

  async ask(limit, before) {
    const signal = this.abort.signal;
    try {
      const found = await get(this.address(limit, before), signal);
      this.fault.hidden = true;
      return signal.aborted ? null : found;
    } catch (error) {
      if (error.name === "AbortError") return null;
      show(this.fault, error.message);
      this.fault.hidden = false;
      return null;
    }
  }

  append({ runs: found, next }) {
    for (const run of found) if (!this.rows.has(run.id)) this.add(run);
    this.batches.forEach((batch) => batch.sum());
    this.before = next ?? null;
    this.next.hidden = this.before === null;
    this.appended?.();
  }

  /** Inserts a run by its time, into the list or among the runs of its batch. */
  add(run) {
    const row = new Row(run);
    this.rows.set(run.id, row);
    if (run.started_by?.kind !== "batch") return insert(this.list, row.element);
    const { name } = run.started_by;
    if (!this.batches.has(name)) {
      const batch = new Batch(name, run.started_at);
      this.batches.set(name, batch);
      insert(this.list, batch.element);
    }
    const batch = this.batches.get(name);
    batch.rows.add(row);
    insert(batch.list, row.element);
  }
}

/** Inserts an element after the newer ones, searching from the end because most are the oldest. */
function insert(list, element) {
  let before = null;
  for (let at = list.lastElementChild; at && at.dataset.at < element.dataset.at; at = at.previousElementSibling) before = at;
  list.insertBefore(element, before);
}
