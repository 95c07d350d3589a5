// The form for a new run: a task of the project or a text, its parameters, and a model, lane and
// budget that replace those of the task.

import { get, post } from "./api.js";
import { announce, el, folded, show } from "./dom.js";
import { Field, menu, parameter } from "./fields.js";
import { entitle } from "./waiting.js";
import { money } from "./words.js";

const EXAMPLE = "# Fix the failing test\n\nThe test `adds` in tests/sum.rs fails. Find out why, and fix the code.\n";
const WRITE = "";
const FILE = "?";
const OTHER = "?";
/** The line of the front matter that declares parameters. */
const PARAMS = /^params\s*:/m;
const AMOUNTS = ["0.50", "1.00", "2.00", "5.00", "10.00", "25.00"];

/** Shows the form; `given` may name the preselected task. */
export function begin(main, given) {
  entitle("New run");
  show(main, el("h1", { tabindex: "-1" }, "New run"), el("p.faint", {}, "Loading…"));
  let isLeft = false;
  get("/v1/choices").then(
    (choices) => isLeft || show(main, el("h1", { tabindex: "-1" }, "New run"), new Form(choices, given.get("task")).element),
    (error) => isLeft || show(main, el("h1", { tabindex: "-1" }, "New run"), el("p.bad", { role: "alert" }, error.message)),
  );
  return () => (isLeft = true);
}

class Form {
  constructor({ tasks, models, default_model: usual, lanes }, wanted) {
    this.tasks = new Map(tasks.map((task) => [task.path, task]));
    this.usual = usual;
    this.key = word(); // submitting the same task again returns the same run
    const named = tasks.map(({ path, title, fault }) => [path, `${title === path ? path : `${title} (${path})`}${fault ? " – cannot run" : ""}`]);
    this.task = new Field("choice", "Task", menu("choice", [[WRITE, "Write a task…"], ...named, [FILE, "Another file…"]]));
    const text = el("textarea", { name: "task", rows: "12", spellcheck: "false", placeholder: EXAMPLE });
    this.text = new Field("task", "Text", text, "Markdown. Front matter between two lines of --- may set more, e.g. parameters.");
    const path = el("input.wide", { type: "text", name: "path", placeholder: "docs/task.md", autocomplete: "off", spellcheck: "false" });
    this.path = new Field("path", "File", path, "The path of a task, relative to the project folder.");
    const lines = el("textarea", { name: "params", rows: "3", spellcheck: "false", placeholder: "name=value" });
    this.lines = new Field("params", "Parameters", lines, "One per line, as name=value. Only for tasks with parameters.");
    this.params = el("div.grid");
    this.preview = el("div");
    this.declared = [];
    this.model = new Field("models", "Model", menu("model", [["", ""], ...models]));
    this.lane = new Field("lanes", "Lane", menu("lane", [["", ""], ...lanes]), "The checks that judge the work.");
    const amounts = [["", ""], ...AMOUNTS.map((usd) => [usd, `at most $${usd}`]), [OTHER, "Another amount…"]];
    this.budget = new Field("max_usd", "Budget", menu("budget", amounts), "The run ends when it reaches this cost.");
    const amount = el("input", { type: "number", name: "usd", min: "0.000001", step: "any", inputmode: "decimal" });
    this.amount = new Field("amount", "US dollars", amount);
    this.faults = el("div.faults", { role: "alert" });
    this.send = el("button.primary", { type: "submit" }, "Begin");
    this.build();
    if (wanted && this.tasks.has(wanted)) this.task.input.value = wanted;
    this.choose();
  }

  build() {
    this.element = el(
      "form.begin",
      { novalidate: true, onsubmit: (event) => this.submit(event) },
      el("fieldset", {}, el("legend", {}, "What to do"), this.task.element, this.preview, this.text.element, this.path.element),
      (this.rest = el("fieldset", {}, el("legend", {}, "Parameters"), this.params, this.lines.element)),
      el(
        "fieldset",
        {},
        el("legend", {}, "How"),
        el("div.grid", {}, [this.model, this.lane, this.budget, this.amount].map(({ element }) => element)),
      ),
      this.faults,
      this.send,
    );
    this.task.input.addEventListener("change", () => this.choose());
    this.budget.input.addEventListener("change", () => this.choose());
    this.text.input.addEventListener("input", () => this.choose());
  }

  /** Shows the fields for the chosen task. */
  choose() {
    const chosen = this.task.input.value;
    const task = this.tasks.get(chosen);
    this.text.element.hidden = chosen !== WRITE;
    this.path.element.hidden = chosen !== FILE;
    this.lines.element.hidden = Boolean(task);
    this.rest.hidden = task ? !task.params.length : chosen === WRITE && !PARAMS.test(this.text.input.value);
    this.amount.element.hidden = this.budget.input.value !== OTHER;
    if (this.shown !== chosen) {
      this.shown = chosen;
      this.declared = (task?.params ?? []).map(parameter);
      show(this.params, this.declared.map(({ element }) => element));
      show(this.preview, task ? folded("Text", () => el("pre", { tabindex: "0" }, task.text)) : null);
      show(this.faults);
      this.tellUsual(task);
    }
    this.task.blame(task?.fault ?? "");
  }

  /** Names in each menu what holds if nothing else is chosen. */
  tellUsual(task) {
    const usual = this.usual ? `Default: ${this.usual}` : "As the task says";
    const words = task && !task.fault ? ofTask(task, usual) : [usual, "As the task says", "As the task says"];
    [this.model, this.lane, this.budget].forEach(({ input }, at) => show(input.options[0], words[at]));
  }

  get fields() {
    return [this.task, this.text, this.path, ...this.declared, this.lines, this.model, this.lane, this.budget, this.amount];
  }

  async submit(event) {
    event.preventDefault();
    this.fields.forEach((field) => field.blame());
    show(this.faults);
    const body = this.read();
    if (!body) return this.lead();
    this.send.disabled = true;
    try {
      const made = await post("/v1/runs", body);
      announce("The run is queued");
      location.hash = `#/runs/${made.id}`;
    } catch (error) {
      this.blame(error);
      this.send.disabled = false;
      this.lead();
    }
  }

  /** Returns the request, or nothing if a field is invalid and shows the reason. */
  read() {
    const chosen = this.task.input.value;
    const body = { key: this.key, params: {} };
    if (chosen === WRITE) body.task = this.text.input.value;
    else body.path = chosen === FILE ? this.path.value : chosen;
    if (body.task?.trim() === "") this.text.blame("Describe what to do.");
    if (body.path === "") this.path.blame("Enter the path of a task file.");
    for (const field of this.declared) {
      if (field.value) body.params[field.name.slice("params.".length)] = field.value;
      else if (field.input.hasAttribute("aria-required")) field.blame("This parameter needs a value.");
    }
    for (const line of this.rest.hidden || this.tasks.has(chosen) ? [] : this.lines.input.value.split("\n").filter((line) => line.trim())) {
      const at = line.indexOf("=");
      if (at < 1) this.lines.blame(`“${line}” is not a parameter: write name=value.`);
      else body.params[line.slice(0, at).trim()] = line.slice(at + 1).trim();
    }
    if (this.model.value) body.models = [this.model.value];
    if (this.lane.value) body.lanes = [this.lane.value];
    const usd = this.budget.value === OTHER ? this.amount.value : this.budget.value;
    if (usd) body.max_usd = Number(usd);
    if (this.budget.value === OTHER && !(Number(usd) > 0)) this.amount.blame("Enter an amount above 0.");
    return this.fields.some(({ fault }) => !fault.hidden) ? null : body;
  }

  /** Shows each fault beside its field, and the others above the button. */
  blame(error) {
    const rest = [];
    const byField = new Map();
    for (const fault of error.errors) {
      const field = this.fields.find(({ name, element }) => name === fault.field && !element.hidden);
      const ofText = !fault.field && !this.text.element.hidden ? this.text : this.path.element.hidden ? this.task : this.path;
      const place = field ?? (fault.field?.startsWith("params.") ? this.lines : fault.field ? null : ofText);
      if (place === this.lines) this.rest.hidden = false;
      if (place && !place.element.hidden) byField.set(place, [...(byField.get(place) ?? []), fault]);
      else rest.push(fault);
    }
    for (const [field, faults] of byField) field.blame(faults.map((fault) => item(fault, field === this.text ? this.text.input : null)));
    if (!error.errors.length || rest.length) show(this.faults, el("p.bad", {}, error.message), rest.map((fault) => item(fault, null)));
  }

  /** Focuses the first invalid field. */
  lead() {
    this.fields.find(({ fault, element }) => !fault.hidden && !element.hidden)?.input.focus();
  }
}

/** Returns the model, lane and budget of a task. */
function ofTask({ models, lanes, usd_micros: usd }, usual) {
  return [
    models.length ? `Of the task: ${models.join(", ")}` : usual,
    lanes.length ? `Of the task: ${lanes.join(", ")}` : "Of the task: no checks",
    usd === null ? "No limit" : `Of the task: at most ${money(usd)}`,
  ];
}

/** Returns a list item for a fault. If the text is available, the position is a link into it. */
function item({ line, column, message, hint, field }, text) {
  const where = field ? "" : `line ${line}${column ? `, column ${column}` : ""}: `;
  const go = () => {
    const before = text.value.split("\n").slice(0, line - 1);
    const start = before.join("\n").length + (line > 1 ? 1 : 0);
    text.focus();
    text.setSelectionRange(start + Math.max((column ?? 1) - 1, 0), start + (text.value.split("\n")[line - 1]?.length ?? 0));
  };
  const place = where && text ? el("button.plain", { type: "button", onclick: go }, where) : where;
  const isForTerminals = hint?.includes("--param");
  return el("span.item", {}, place, message, hint && !isForTerminals ? el("span.faint", {}, ` – ${hint}`) : null);
}

/** Returns a random key for this form. */
export function word() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `page-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
