// The actions on a run, in its header: run it again, continue it, resume it, take its changes, cancel it.

import { path, post } from "./api.js";
import { word } from "./begin.js";
import { announce, el, say, show } from "./dom.js";
import { artifact } from "./log.js";
import { count, many, money, took } from "./words.js";

/** For each reason of an end by a limit: its key in a request, its label, what the run has used, and an example. */
const LIMITS = {
  gate_failed: ["max_retries", "Further attempts in all", ({ attempts }) => many(Math.max(attempts - 1, 0), "further attempt"), "5"],
  max_turns: ["max_turns", "Turns in all", ({ turns }) => many(turns, "turn"), "200"],
  budget_tokens: ["max_tokens", "Tokens in all", (end) => `${count(end.input_tokens + end.output_tokens)} tokens`, "500000"],
  budget_money: ["max_usd", "US dollars in all", ({ cost_micros: cost }) => money(cost), "5"],
  budget_time: ["max_time", "Time of work in all", (end, lasted) => took(lasted), "90m"],
};

/** The buttons for a run. */
export class Actions {
  constructor(changed) {
    this.changed = changed;
    this.element = el("div.buttons.actions");
    this.key = word(); // pressing a button twice begins only one run
  }

  /** Shows the actions that fit the run's state. The focused element keeps the focus. */
  put(run) {
    const { id, state, branch, artifacts, outcome, machine } = run;
    this.run = run;
    const isOver = state === "ended";
    const isOwn = !machine;
    const isLimited = isOver && isOwn && Object.hasOwn(LIMITS, outcome?.reason);
    const isForNow = isOver && (["blocked", "not_delivered"].includes(outcome?.reason) || outcome?.exit_code === 143);
    const has = (file) => (artifacts ?? []).some(({ name }) => name === file);
    const hasPatch = isOver && has("diff.patch");
    const all = [
      isOver && isOwn && has("journal.jsonl") && ["Run again", (button) => this.again(id, button)],
      isOver && isOwn && run.turns > 0 && ["Continue…", () => this.goOn(id)],
      isLimited && ["Resume with a higher limit…", () => this.raise()],
      isOwn && (isForNow || state === "interrupted") && ["Resume", (button) => this.resume(id, button)],
      state === "interrupted" && isOwn && ["Copy resume command", (button) => copy(button, `fledge runs resume ${id}`)],
      hasPatch && outcome?.verified && ["Copy apply command", (button) => copy(button, `fledge apply ${id}`)],
      branch && ["Copy branch", (button) => copy(button, branch)],
      hasPatch && ["Download patch", artifact(id, "diff.patch")],
      (state === "running" || state === "queued") && ["Cancel the run…", () => this.cancel(id)],
    ].filter(Boolean);
    const names = all.map(([name]) => name).join();
    if (names === this.shown) return;
    this.shown = names;
    show(this.element, all.map(button));
  }

  async again(id, pressed) {
    pressed.disabled = true;
    try {
      const made = await post("/v1/runs", { again: id, key: this.key });
      announce("The run is queued");
      location.hash = `#/runs/${made.id}`;
    } catch (error) {
      pressed.disabled = false;
      dialog({ title: "Cannot run the task again", body: el("p.bad", { role: "alert" }, error.message), close: "Close" });
    }
  }

  async resume(id, pressed) {
    pressed.disabled = true;
    try {
      await post(path("runs", id, "resume"));
      announce("The run is queued");
      this.changed();
    } catch (error) {
      dialog({ title: "Cannot resume the run", body: el("p.bad", { role: "alert" }, error.message), close: "Close" });
    }
    pressed.disabled = false;
  }

  /** Asks for a higher value of the limit that ended the run. */
  raise() {
    const { id, outcome, started_at: began } = this.run;
    const [key, label, spent, example] = LIMITS[outcome.reason];
    const used = spent(outcome, Date.parse(outcome.ended_at) - Date.parse(began));
    const input = el("input", { type: "text", name: "limit", placeholder: example, autocomplete: "off" });
    const words = `${label}. The run has used ${used} so far, which counts.`;
    dialog({
      title: "Resume with a higher limit",
      body: el("label.field", {}, el("span", {}, words), input),
      close: "Close",
      act: ["Resume", "primary"],
      run: async () => {
        const given = input.value.trim();
        const value = key === "max_time" ? given : Number(given);
        if (!given || Number.isNaN(value)) throw new Error(`Enter a value, e.g. ${example}.`);
        await post(path("runs", id, "resume"), { [key]: value });
        announce("The run is queued");
        this.changed();
      },
    });
  }

  goOn(id) {
    const text = el("textarea", { name: "next", rows: "5", placeholder: "Now also update the changelog." });
    const key = word();
    dialog({
      title: "Continue from this run",
      body: el("label.field", {}, el("span", {}, "What to do next. The new run keeps the conversation and the gate of this run."), text),
      close: "Close",
      act: ["Begin", "primary"],
      run: async () => {
        const made = await post("/v1/runs", { after: id, task: text.value, key });
        announce("The run is queued");
        location.hash = `#/runs/${made.id}`;
      },
    });
  }

  cancel(id) {
    dialog({
      title: "Cancel this run?",
      body: el("p", {}, "The work so far is kept, and the run ends as cancelled."),
      close: "Keep running",
      act: ["Cancel the run", "danger"],
      run: async () => {
        await post(path("runs", id, "cancel"));
        announce("Asked the run to stop");
        this.changed();
      },
    });
  }
}

function button([name, act]) {
  if (typeof act === "string") return el("a.button", { href: act, download: "" }, name);
  const tone = name.startsWith("Cancel") ? "button.danger" : "button";
  const made = el(tone, { type: "button", onclick: () => act(made) }, name);
  return made;
}

/** Copies a text, or shows it for manual copying if the browser denies access to the clipboard. */
async function copy(pressed, text) {
  const name = pressed.textContent;
  try {
    await navigator.clipboard.writeText(text);
    announce(`Copied: ${text}`);
    say(pressed, "Copied");
    setTimeout(() => say(pressed, name), 1500);
  } catch {
    const line = el("input.wide", { type: "text", readonly: true, value: text, "aria-label": name });
    dialog({ title: name, body: line, close: "Close" });
    line.select();
  }
}

/** A dialog with a close button and, if `act` is given, an action button. */
function dialog({ title, body, close, act = null, run = null }) {
  const fault = el("p.bad", { role: "alert", hidden: true });
  const box = el("dialog", { "aria-label": title, onclose: () => box.remove() }, el("h2", {}, title), body, fault);
  const done = async (event) => {
    event.target.disabled = true;
    try {
      await run();
      box.close();
    } catch (error) {
      show(fault, error.message);
      fault.hidden = false;
      event.target.disabled = false;
    }
  };
  const doing = act ? el(`button.${act[1]}`, { type: "button", onclick: done }, act[0]) : null;
  box.append(el("div.buttons", {}, doing, el("button", { type: "button", onclick: () => box.close() }, close)));
  document.body.append(box);
  box.showModal();
}
