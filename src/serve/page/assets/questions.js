// Calls that wait for a person's approval: the full question and the answers.

import { argumentsText } from "./blocks.js";
import { get, path, post } from "./api.js";
import { announce, el, show } from "./dom.js";
import { away, clock } from "./words.js";

/** The questions of a run; `refresh` updates them. */
export class Questions {
  constructor(run, { title = null, changed = () => {} } = {}) {
    this.run = run;
    this.title = title;
    this.changed = changed;
    this.shown = new Map();
    this.element = el(title ? "section.questions" : "section.questions.stays", {
      hidden: true,
      "aria-label": title ? `Questions of ${title}` : "Questions",
    });
    if (title) this.element.append(el("h2", {}, el("a", { href: `#/runs/${run}` }, title)));
  }

  /** Fetches the open questions. */
  async refresh() {
    this.put((await get(path("runs", this.run, "confirmations"))).confirmations);
  }

  /** Shows the open questions. A form that is being filled in stays unchanged. */
  put(open) {
    const ids = new Set(open.map(({ id }) => id));
    for (const [id, form] of this.shown) {
      if (ids.has(id)) continue;
      const held = form.contains(document.activeElement);
      form.remove();
      this.shown.delete(id);
      if (held) document.querySelector("h1")?.focus();
    }
    for (const question of open) {
      if (this.shown.has(question.id)) continue;
      const form = this.form(question);
      this.shown.set(question.id, form);
      this.element.append(form);
      announce(`${question.tool} waits for your answer`);
    }
    this.element.hidden = open.length === 0;
  }

  form({ id, of, tool, args, asked_at, until }) {
    const why = el("input", { type: "text", name: "why", autocomplete: "off", maxlength: "2000" });
    const fault = el("p.bad", { role: "alert", hidden: true });
    const buttons = el(
      "div.buttons",
      {},
      el("button.primary", { type: "submit", value: "yes" }, "Approve"),
      el(
        "button",
        { type: "submit", value: "always", title: "Yes, and do not ask again for the same command, path or arguments in this run" },
        "Always allow this",
      ),
      el("button.danger", { type: "submit", value: "no" }, "Deny"),
    );
    const time = [asked_at ? `asked ${away(asked_at)}` : "", until ? `auto-denied at ${clock(until)}` : ""].filter(Boolean).join(", ");
    const form = el(
      "form.question",
      { "aria-label": `May ${tool} run?` },
      el(
        "p.asked",
        {},
        el("span.shape.wait", { "aria-hidden": "true" }, "?"),
        of ? `Sub-agent ${of} asks: may ` : "May ",
        el("code", {}, tool),
        " run? ",
        el("span.faint", {}, time),
      ),
      el("pre", { tabindex: "0" }, argumentsText(args)),
      buttons,
      el("label.why", {}, "Reason for the model, if you deny", why),
      fault,
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const answer = event.submitter?.value ?? "yes";
      buttons.querySelectorAll("button").forEach((button) => (button.disabled = true));
      try {
        await post(path("runs", this.run, "confirmations", id), { answer, why: why.value });
        announce(answer === "no" ? "Denied" : "Approved");
      } catch (error) {
        show(fault, error.status === 409 ? "Already answered." : error.message);
        fault.hidden = false;
        buttons.querySelectorAll("button").forEach((button) => (button.disabled = false));
        if (error.status !== 409) return;
      }
      await this.refresh().catch(() => {});
      this.changed();
    });
    return form;
  }
}
