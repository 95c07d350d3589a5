// The elements for the blocks of a run's story. Each element is created once and then updated, so
// expanded parts stay expanded.

import { ansi } from "./ansi.js";
import { diff } from "./diff.js";
import { el, folded, harmless, say, show } from "./dom.js";
import { place as logPlace } from "./log.js";
import { count, ended, many, step as stepWords, took } from "./words.js";

/** Creates the element of a block and the function that updates it. */
export function view(block, context) {
  const made = { turn, gate, note, attempt, end }[block.kind](block, context);
  if (block.of) made.element.classList.add("of");
  return made;
}

function once(element) {
  return { element, update() {} };
}

function attempt({ number }) {
  return once(el("h3.attempt", {}, `Attempt ${number}`));
}

function note({ tone, text, more }) {
  const shape = { good: "✓", bad: "✕", warn: "!", faint: "·" }[tone];
  const line = [el("span.shape", { class: `shape ${tone}`, "aria-hidden": "true" }, shape), text];
  return once(more ? folded(el("span", {}, line), () => el("pre", {}, more), { class: "note" }) : el("p.note", {}, line));
}

function end({ message, ...outcome }) {
  const { shape, word, tone } = ended(outcome);
  return once(el("p.end", { class: `end ${tone}` }, el("strong", {}, `${shape} ${word}`), message ? ` – ${message}` : ""));
}

function turn(block) {
  const head = el("p.head");
  const thinking = el("pre.thinking");
  const thoughts = el("details", { hidden: true }, el("summary", {}, "Thinking"), thinking);
  const said = el("div.said");
  const tools = el("ul.tools");
  const output = el("pre.live", { hidden: true, tabindex: "0", "aria-label": "Output so far" });
  const element = el("section.turn", {}, head, thoughts, said, tools, output);
  const shown = [];
  const update = () => {
    const who = block.of ? `Sub-agent ${block.of}, turn ${block.number}` : `Turn ${block.number}`;
    const state = { live: "answering…", done: "", discarded: "discarded" }[block.state];
    say(head, [who, block.model, state || took(block.ms)].filter(Boolean).join(" · "));
    element.dataset.state = block.state;
    thoughts.hidden = !block.thinking;
    grow(thinking, block.thinking);
    grow(said, block.text);
    said.hidden = !block.text;
    block.tools.forEach((call, at) => {
      if (shown[at] === call) return;
      const item = tool(call);
      if (tools.children[at]) tools.children[at].replaceWith(item);
      else tools.append(item);
      shown[at] = call;
    });
    while (tools.children.length > block.tools.length) tools.lastChild.remove();
    shown.length = block.tools.length;
    output.hidden = !block.output;
    if (!output.hidden) {
      show(output, ansi(block.output));
      output.scrollTop = output.scrollHeight;
    }
    if (block.state === "discarded" && block.error && !element.querySelector(".error")) element.append(el("p.error.warn", {}, block.error));
  };
  update();
  return { element, update };
}

/** Appends the new part of a text, or replaces a text that changed otherwise. */
function grow(element, text) {
  const had = element.dataset.length ? Number(element.dataset.length) : 0;
  if (text.length === had) return;
  if (had > 0 && text.length > had && element.firstChild) element.firstChild.appendData(harmless(text.slice(had)));
  else element.textContent = harmless(text);
  element.dataset.length = text.length;
}

function tool(call) {
  const [shape, tone, word] = call.running
    ? ["▶", "busy", "running"]
    : call.denied
      ? ["⊘", "warn", "not run"]
      : call.success
        ? ["✓", "good", "done"]
        : ["✕", "bad", "failed"];
  const change = call.change ? ` ${call.change.kind} +${call.change.added} −${call.change.removed}` : "";
  const exit = call.detail?.output ? exitWords(call.detail.output) : "";
  const summary = el(
    "span",
    {},
    el("span", { class: `shape ${tone}`, role: "img", "aria-label": word }, shape),
    el("code.name", {}, call.name),
    " ",
    el("code.gist", {}, gist(call)),
    call.denied ? el("span.warn.why-not", {}, denial(call)) : "",
    el("span.faint.number", {}, [change, exit, call.running || call.denied ? "" : took(call.duration_ms)].filter(Boolean).join(" · ")),
  );
  return el(
    "li",
    {},
    folded(summary, () => inside(call)),
  );
}

/** Returns the reason of a denied call, from the text for the model. */
function denial({ output }) {
  return String(output ?? "").replace(/^denied: /, "").split("\n")[0];
}

function exitWords({ exit_code, signal, timed_out }) {
  if (timed_out) return "timed out";
  if (signal !== null && signal !== undefined) return `signal ${signal}`;
  return exit_code ? `exit ${exit_code}` : "";
}

/** Returns a one-line summary of a call. */
function gist({ args }) {
  const text =
    args?.command ??
    args?.path ??
    args?.pattern ??
    args?.task ??
    (typeof args === "object" && args !== null ? Object.values(args).find((value) => typeof value === "string") : args);
  return String(text ?? "")
    .split("\n")[0]
    .slice(0, 200);
}

function inside({ args, output, detail }) {
  const parts = [el("p.label", {}, "Arguments"), el("pre", { tabindex: "0" }, argumentsText(args))];
  if (detail?.diff) parts.push(el("p.label", {}, "Change"), diff(detail.diff, args?.path));
  if (output) parts.push(el("p.label", {}, "Answer"), el("pre", { tabindex: "0" }, ansi(output)));
  return el("div", {}, parts);
}

/** Formats arguments for people; long texts keep their lines. */
export function argumentsText(args) {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return JSON.stringify(args, null, 2) ?? "";
  const line = ([name, value]) =>
    typeof value === "string" ? `${name}: ${value.includes("\n") ? `\n${value}` : value}` : `${name}: ${JSON.stringify(value, null, 2)}`;
  return Object.entries(args).map(line).join("\n");
}

const RULINGS = {
  passed: ["✓", "good", "The gate passed"],
  failed: ["✕", "bad", "The gate failed"],
  errored: ["⚠", "bad", "The gate could not run"],
  tampered: ["⚠", "bad", "The gate was tampered with"],
  running: ["▶", "busy", "The gate is running"],
  base: ["·", "faint", "Checked the base"],
};

function gate(block, context) {
  const head = el("h3");
  const steps = el("ul.steps");
  const more = el("div");
  const element = el("section.gate", {}, head, steps, more);
  const rows = new Map();
  const update = () => {
    const [shape, tone, words] = RULINGS[block.state] ?? RULINGS.running;
    show(
      head,
      el("span", { class: `shape ${tone}`, "aria-hidden": "true" }, shape),
      [block.attempt ? `${words}, attempt ${block.attempt}` : words, took(block.ms)].filter(Boolean).join(" · "),
    );
    element.dataset.state = block.state;
    let place = steps.firstChild;
    for (const [key, step] of block.steps) {
      if (!rows.has(key)) rows.set(key, stepRow(context));
      const { element, update: put } = rows.get(key);
      if (element === place) place = place.nextSibling;
      else steps.insertBefore(element, place);
      put(step);
    }
    if (block.state !== "running" && !more.children.length) more.append(...verdict(block));
  };
  update();
  return { element, update };
}

function verdict({ findings, feedback, proof, state }) {
  const parts = (findings ?? []).map(({ path, change, rule }) =>
    el("p.note", {}, el("span.shape.bad", {}, "⚠"), el("code", {}, path), ` was ${change}, which ${rule} protects`),
  );
  if (proof)
    parts.push(
      el(
        "p.note.faint",
        {},
        [
          `tree ${String(proof.tree).slice(0, 12)}`,
          proof.room === "clean" ? "a clean room" : "in place",
          `sandbox ${proof.sandbox}`,
          proof.tests ? many(count(proof.tests), "test") : "",
        ]
          .filter(Boolean)
          .join(" · "),
      ),
    );
  if (feedback && state !== "passed") parts.push(folded("Feedback to the model", () => el("pre", { tabindex: "0" }, feedback)));
  return parts;
}

function stepRow(context) {
  const shape = el("span.shape", { role: "img" });
  const name = el("span");
  const facts = el("span.faint.number");
  const output = el("pre", { tabindex: "0" });
  const whole = el("p.label", { hidden: true });
  const details = el("details", {}, el("summary", {}, shape, name, " ", facts), whole, output);
  const element = el("li", {}, details);
  let status = "";
  const update = (step) => {
    const words = stepWords(step.status);
    if (status !== step.status) {
      status = step.status;
      shape.className = `shape ${words.tone}`;
      shape.setAttribute("aria-label", words.word);
      say(shape, words.shape);
      details.open = ["failed", "timed_out", "errored"].includes(status);
    }
    say(name, `${step.lane} / ${step.step}`);
    const counts = step.tests?.counts;
    const newest = step.status === "running" ? (step.partial || step.lines.at(-1))?.slice(0, 160) : "";
    say(
      facts,
      [step.status === "passed" ? "" : words.word, took(step.duration_ms), counts ? many(counts.tests, "test") : "", step.note, newest]
        .filter(Boolean)
        .join(" · "),
    );
    show(output, step.command ? `$ ${step.command}\n` : "", ansi(step.excerpt || step.lines.join("\n")));
    const log = `logs/${step.log?.split("/logs/").at(-1)}`;
    if (whole.hidden && context.logs.has(log)) show(whole, el("a", { href: logPlace(context.run, log) }, "Whole log"));
    whole.hidden = !context.logs.has(log);
  };
  return { element, update };
}
