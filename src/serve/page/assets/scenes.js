// The effect of each journal scene and each live event on the blocks of a story.

import { reasonWords } from "./words.js";

const MOST_OUTPUT = 20_000;

/** The handlers of journal scenes. */
export const SCENES = {
  began: (story, data, of) => void (of || (story.task = data)),
  attempt: (story, { number }, of) => void (!of && number > 1 && story.add({ kind: "attempt", number })),
  turn: (story, data, of, at) => {
    const turn = story.turn(of, data.number, at);
    Object.assign(turn, { text: data.text, state: "done", ms: data.duration_ms, model: data.model, at: at - data.duration_ms });
    story.turns.set(of ?? "", data.number);
  },
  used: (story, usage, of, at) => void (of || story.spent(at, usage)),
  tool: (story, data, of) => story.tool(of, data),
  discarded: (story, { error }, of) => story.note("warn", "An answer was discarded", error, of),
  subagent: (story, { finished, note }, of) => story.note("faint", finished ? "The sub-agent ended" : "A sub-agent began", note, of),
  answered: (story, { tool, approved }, of) =>
    story.note(approved ? "good" : "bad", `${tool} was ${approved ? "approved" : "denied"}`, null, of),
  hooks: (story, { notes }, of) => void (notes?.length && story.note("faint", "Feedback of hooks to the model", notes.join("\n"), of)),
  query: (story, { answer }, of) => story.note("faint", "Looked up for the model", answer, of),
  compaction: (story, { success, note }, of) =>
    story.note(
      success ? "faint" : "warn",
      success ? "The conversation was shortened" : "The conversation could not be shortened",
      note,
      of,
    ),
  gate: (story, { attempt, verdict }, of, at) => story.ruled(verdict.ruling, { attempt, ...verdict }, at),
  committed: (story, { commit, branch }) =>
    story.note("good", `Committed as ${commit.slice(0, 12)}${branch ? ` on ${branch.replace("refs/heads/", "")}` : ""}`),
  retry: (story, { what, tries, wait_ms, error }, of) =>
    story.note("warn", `${what} failed, try ${tries}: next try in ${(wait_ms / 1000).toFixed(1)} s`, error, of),
  limit: (story, { reason }, of) => story.note("bad", `A limit was reached: ${reasonWords(reason)}`, null, of),
  stopped: (story, { partial_text }, of) =>
    story.note("faint", "The run was asked to stop", partial_text || null, of),
  recalled: (story, { ids }) =>
    story.note("faint", `${ids.length === 1 ? "One memory" : `${ids.length} memories`} of earlier runs went into the first message`),
  resumed: (story, _, of) => story.note("faint", "Resumed by another process", null, of),
  warning: (story, { message }, of) => story.note("warn", message, null, of),
  ended: (story, data, of) => story.ended(data, of),
};

const PHASES = {
  backing_off: "waiting before another try",
  confirming: "waiting for your answer",
  running_tools: "running tools",
  dispatching: "a sub-agent works",
  running_hooks: "finishing the turn",
  answering_query: "looking something up",
  compacting: "shortening the conversation",
  judging_base: "waiting for the checks of the base",
};

/** The handlers of live events. */
export const EVENTS = {
  started: (story, data, of) => void (of || (story.task ??= { title: data.title, models: data.models })),
  state_changed: (story, state, of, at) => {
    if (of) return;
    story.doing =
      { planning: "planning", executing: "working", verifying: "running the gate", reporting: "writing the report" }[state] ?? null;
    if (state === "verifying") story.gating().at ??= at;
    if (state === "executing" && story.gate) story.wasBase();
    if (state === "executing" && story.attempts > 0) story.add({ kind: "attempt", number: story.attempts + 1 });
  },
  phase_changed: (story, phase, of, at) => {
    if (phase === "calling_model") {
      const number = (story.turns.get(of ?? "") ?? 0) + 1;
      const old = story.open.get(of ?? "");
      const isEmpty = old?.state === "live" && !old.text && !old.thinking && !old.tools.length;
      if (isEmpty) Object.assign(old, { number, at });
      else story.turn(of, number, at);
      if (!of) story.doing = `waiting for the model, turn ${number}`;
    } else if (!of) story.doing = PHASES[phase] ?? story.doing;
  },
  text: (story, piece, of) => grow(story, of, "text", piece),
  thinking: (story, piece, of) => grow(story, of, "thinking", piece),
  tool_call: (story, { name, args }, of) => {
    const turn = story.live(of);
    turn.tools.push({ name, args, running: true });
    story.changed.add(turn);
  },
  tool_output: (story, { text }, of) => {
    const turn = story.newest(of);
    turn.output = (turn.output + text).slice(-MOST_OUTPUT);
    story.changed.add(turn);
  },
  tool_detail: (story, { success, ...data }, of) => story.tool(of, { success: success ?? story.succeeded, ...data }),
  tool_result: (story, { success }) => void (story.succeeded = success),
  usage: (story, usage, of, at) => {
    const turn = story.open.get(of ?? "");
    if (turn?.state === "live") {
      Object.assign(turn, { state: "done", ms: turn.at === null ? null : at - turn.at });
      story.turns.set(of ?? "", turn.number);
      story.misses ||= !turn.text && !turn.tools.length;
      story.changed.add(turn);
    }
    if (!of) story.spent(at, usage);
  },
  turn_discarded: (story, { error }, of) => {
    const turn = story.newest(of);
    if (turn.state === "done") story.turns.set(of ?? "", turn.number - 1);
    Object.assign(turn, { state: "discarded", error, tools: turn.tools.filter((call) => !call.running) });
    story.changed.add(turn);
  },
  verify_result: (story, data, of, at) => story.ruled(story.tampered ? "tampered" : data.success ? "passed" : "failed", data, at),
  lane_step: (story, progress) => story.step(progress),
  confirmation: (story, { name, approved }, of) => {
    if (approved === null || approved === undefined) story.said = `${name} waits for your answer`;
    else SCENES.answered(story, { tool: name, approved }, of);
  },
  tamper: (story, { findings }) => {
    story.tampered = true;
    Object.assign(story.gating(), { findings });
  },
  proved: (story, { proof }) => void (story.gating().proof = proof),
  resumed: SCENES.resumed,
  warning: (story, message, of) => SCENES.warning(story, { message }, of),
  hook: (story, { note }, of) => SCENES.hooks(story, { notes: [note] }, of),
  finished: (story, data, of) => story.ended(data, of),
  recalled: SCENES.recalled,
  retry: SCENES.retry,
  compaction: SCENES.compaction,
  subagent: SCENES.subagent,
  limit: SCENES.limit,
  committed: SCENES.committed,
};

function grow(story, of, what, piece) {
  const turn = story.live(of);
  turn[what] += piece;
  story.changed.add(turn);
}
