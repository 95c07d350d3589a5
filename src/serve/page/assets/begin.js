// The form that begins a run: a task's text, or the path of one in the workspace.

import { post } from "./api.js";
import { announce, el, show } from "./dom.js";
import { entitle } from "./waiting.js";

const EXAMPLE =
  "---\nmodel: anthropic/claude-sonnet-4-5\n---\n# Mend the failing test\n\nThe test `adds` in tests/sum.rs fails. Find out why, and mend the code.\n";

/** The page of the form. */
export function begin(main) {
  entitle("New run");
  const key = word(); // sent again with the same task, it is the same run
  const text = el("textarea", { name: "task", rows: "14", spellcheck: "false", placeholder: EXAMPLE, "aria-describedby": "about-task" });
  const file = el("input.wide", { type: "text", name: "path", placeholder: "tasks/mend.md", autocomplete: "off", spellcheck: "false" });
  const params = el("textarea", {
    name: "params",
    rows: "3",
    spellcheck: "false",
    placeholder: "name=value",
    "aria-describedby": "about-params",
  });
  const faults = el("div.faults", { role: "alert" });
  const send = el("button.primary", { type: "submit" }, "Begin");
  const form = el(
    "form.begin",
    {},
    el(
      "fieldset",
      {},
      el("legend", {}, "What is to be done"),
      el("label.field", {}, el("span", {}, "A task's text"), text),
      el("p.faint", { id: "about-task" }, "Markdown, with front matter where it has any."),
      el("p.or", {}, "or"),
      el("label.field", {}, el("span", {}, "The path of a task in the workspace"), file),
    ),
    el(
      "fieldset",
      {},
      el("legend", {}, "Parameters"),
      el("label.field", {}, el("span", {}, "One a line"), params),
      el("p.faint", { id: "about-params" }, "Only for tasks that take some, as name=value."),
    ),
    faults,
    send,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = read(text.value, file.value.trim(), params.value, key);
    if (typeof body === "string") return show(faults, el("p.bad", {}, body));
    send.disabled = true;
    show(faults);
    try {
      const made = await post("/v1/runs", body);
      announce("The run is queued");
      location.hash = `#/runs/${made.id}`;
    } catch (error) {
      show(
        faults,
        el("p.bad", {}, error.message),
        el(
          "ul",
          {},
          error.errors.map((fault) => faultItem(fault, text)),
        ),
      );
      send.disabled = false;
    }
  });
  show(main, el("h1", { tabindex: "-1" }, "New run"), form);
}

/** The request, or why there is none. */
function read(task, path, params, key) {
  if (!task.trim() === !path) return path ? "Give a text or a path, not both." : "Give a task's text, or the path of one.";
  const given = {};
  for (const line of params.split("\n").filter((line) => line.trim())) {
    const at = line.indexOf("=");
    if (at < 1) return `“${line}” is no parameter: write name=value.`;
    given[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return { ...(path ? { path } : { task }), params: given, key };
}

function faultItem({ line, column, message, hint }, text) {
  const where = line ? `line ${line}${column ? `, column ${column}` : ""}: ` : "";
  const go = () => {
    const before =
      text.value
        .split("\n")
        .slice(0, line - 1)
        .join("\n").length + (line > 1 ? 1 : 0);
    text.focus();
    text.setSelectionRange(before + Math.max((column ?? 1) - 1, 0), before + (text.value.split("\n")[line - 1]?.length ?? 0));
  };
  const place = where && text.value ? el("button.plain", { type: "button", onclick: go }, where) : where;
  return el("li", {}, place, message, hint ? el("span.faint", {}, ` – ${hint}`) : null);
}

/** A word that no other form has. */
function word() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `page-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
