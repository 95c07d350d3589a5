// Builds the blocks of a run's story: model turns, gates and notes. Scenes of the journal come
// first, live events follow; both produce the same blocks. This file does not depend on the page.

import { EVENTS, SCENES } from "./scenes.js";
import { reasonWords } from "./words.js";

const MOST_LINES = 200;
/** Events that arrive in pieces from a live run, but complete from its journal. */
const PIECES = new Set(["text", "thinking", "tool_call", "lane_step"]);

export class Story {
  constructor(startedAt) {
    this.began = Date.parse(startedAt);
    this.blocks = [];
    this.changed = new Set();
    this.spending = []; // {at, cost, tokens}: the total use at a time
    this.doing = null;
    this.said = null; // the newest announcement for screen readers
    this.open = new Map(); // the newest turn of the run ("") and of each sub-agent
    this.turns = new Map(); // the number of ended turns of each
    this.last = new Map(); // the number of the newest live piece of each agent
    this.gate = null;
    this.tampered = false;
    this.attempts = 0; // that the gate has judged
    this.misses = false; // true if live events were missed: `refill` adds them
  }

  /** Returns the blocks that changed since the last call. */
  takeChanged() {
    const changed = this.changed;
    this.changed = new Set();
    return changed;
  }

  add(block) {
    this.blocks.push(block);
    this.changed.add(block);
    return block;
  }

  note(tone, text, more = null, of = null) {
    return this.add({ kind: "note", tone, text, more, of });
  }

  turn(of, number, at) {
    const turn = this.add({
      kind: "turn",
      of: of ?? null,
      number,
      at,
      text: "",
      thinking: "",
      tools: [],
      output: "",
      state: "live",
      ms: null,
      model: "",
      error: "",
    });
    this.open.set(of ?? "", turn);
    return turn;
  }

  newest(of) {
    return this.open.get(of ?? "") ?? this.turn(of, 0, null);
  }

  /** Returns the current turn of the model, to which live pieces belong. */
  live(of) {
    const turn = this.newest(of);
    return turn.state === "live" ? turn : this.turn(of, (this.turns.get(of ?? "") ?? 0) + 1, null);
  }

  /** Fills in missed content of ended turns and gates, because live pieces are sent only once. */
  refill(scenes) {
    this.misses = false;
    const turn = (of, number) =>
      this.blocks.find((block) => block.kind === "turn" && block.of === of && block.number === number && block.state === "done");
    const gate = (attempt) => this.blocks.find((block) => block.kind === "gate" && block.attempt === attempt);
    for (const { of, type, data } of scenes) {
      const block = type === "turn" ? turn(of ?? null, data.number) : type === "gate" ? gate(data.attempt) : null;
      if (!block) continue;
      if (type === "turn") Object.assign(block, { text: data.text, ms: data.duration_ms, model: data.model });
      else block.steps = new Map(data.verdict.steps.map((step) => [`${step.lane}/${step.step}`, { lines: [], ...step }]));
      this.changed.add(block);
    }
  }

  /** Returns the current gate, or a new one. */
  gating() {
    this.gate ??= this.add({ kind: "gate", attempt: null, state: "running", steps: new Map(), feedback: "", findings: [], ms: null });
    return this.gate;
  }

  /** Adds a scene of the journal's story. */
  scene({ of, at_ms, type, data }) {
    SCENES[type]?.(this, data ?? {}, of ?? null, at_ms);
  }

  /**
   * Adds a live event. A complete event (with `from`) is skipped if some of its pieces are already
   * here; the scenes fill in the rest.
   */
  event({ of, at, type, data, seq, from }) {
    const agent = of ?? "";
    if (from !== undefined && this.last.get(agent) >= from) return;
    if (from === undefined && PIECES.has(type)) this.last.set(agent, seq);
    EVENTS[type]?.(this, data, of ?? null, Date.parse(at) - this.began);
  }

  /** Records the use of the run at a time, in milliseconds since its start. */
  spent(at, usage) {
    this.spending.push({ at, cost: usage.cost_micros, tokens: usage.input_tokens + usage.output_tokens });
  }

  step(progress) {
    const [[what, data]] = Object.entries(progress);
    const gate = this.gating();
    const key = `${data.lane}/${data.step}`;
    const step = gate.steps.get(key) ?? { lane: data.lane, step: data.step, status: "running", lines: [] };
    gate.steps.set(key, step);
    if (what === "started") Object.assign(step, { status: "running", command: data.command });
    step.partial = what === "partial" ? data.line : ""; // a line that has not ended
    if (what === "output") {
      step.lines.push(data.line);
      if (step.lines.length > MOST_LINES) step.lines.shift();
    }
    if (what === "ended") Object.assign(step, data);
    if (what === "retried")
      Object.assign(step, data, { status: "running", note: `try ${data.tries} ${data.status.replaceAll("_", " ")}, trying again` });
    this.changed.add(gate);
  }

  ruled(ruling, verdict, at) {
    const { attempt, feedback, findings, duration_ms, steps, failed_steps, proof } = verdict;
    const gate = this.gating();
    Object.assign(gate, { attempt, state: ruling, feedback: feedback ?? "", ms: duration_ms, proof: proof ?? gate.proof });
    gate.at = at - duration_ms;
    if (findings) gate.findings = findings;
    for (const step of steps ?? []) gate.steps.set(`${step.lane}/${step.step}`, { lines: [], ...step });
    for (const name of failed_steps ?? []) {
      const [lane, ...rest] = name.split("/");
      if (!gate.steps.has(name)) gate.steps.set(name, { lane, step: rest.join("/"), status: "failed", lines: [] });
    }
    this.changed.add(gate);
    this.said = `The gate: ${ruling}, attempt ${attempt}`;
    this.attempts = attempt;
    this.misses ||= gate.steps.size === 0;
    this.gate = null;
    this.tampered = false;
  }

  tool(of, tool) {
    const turn = this.newest(of);
    const place = turn.tools.findIndex((call) => call.running && call.name === tool.name && same(call.args, tool.args));
    if (place < 0) turn.tools.push(tool);
    else turn.tools[place] = tool;
    turn.output = "";
    this.changed.add(turn);
  }

  /** Marks the current gate as a run on the base, which gets no verdict. */
  wasBase() {
    if (this.gate === null) return;
    this.gate.state = "base";
    this.changed.add(this.gate);
    this.gate = null;
  }

  /** Ends the run with all its open turns, or only a sub-agent. */
  ended({ reason, verified, cancelled, message, exit_code }, of) {
    for (const [who, turn] of this.open) {
      if (of && who !== of) continue;
      if (turn.state === "live") turn.state = "done";
      turn.tools = turn.tools.filter((call) => !call.running);
      this.changed.add(turn);
    }
    if (of) return;
    this.doing = null;
    this.said = `The run ended: ${reasonWords(reason)}`;
    return this.add({ kind: "end", reason, verified, cancelled: cancelled ?? reason === "cancelled", message, exit_code });
  }
}

function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}
