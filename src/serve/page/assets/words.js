// Formatting of numbers, times and states.

const UNITS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1000, "s"],
];

/** Formats a duration: `340 ms`, `4.2 s`, `3 m 5 s`, `2 h 10 m`. */
export function took(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const at = UNITS.findIndex(([unit]) => ms >= unit);
  const [unit, name] = UNITS[at];
  const [below, lower] = UNITS[at + 1];
  const rest = Math.floor((ms % unit) / below);
  return `${Math.floor(ms / unit)} ${name}${rest ? ` ${rest} ${lower}` : ""}`;
}

/** Formats the distance to a time: `just now`, `4 m ago`, `in 2 h`. */
export function away(time, now = Date.now()) {
  const ms = Date.parse(time) - now;
  if (Number.isNaN(ms)) return "";
  const size = Math.abs(ms);
  if (size < 5000) return "just now";
  const [unit, name] = UNITS.find(([unit]) => size >= unit);
  const count = `${Math.floor(size / unit)} ${name}`;
  return ms < 0 ? `${count} ago` : `in ${count}`;
}

/** Formats a time in the time zone of the browser. */
export function clock(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** Formats an amount in millionths of a dollar. */
export function money(micros) {
  if (micros === null || micros === undefined) return "";
  const dollars = micros / 1_000_000;
  return `$${dollars.toFixed(dollars > 0 && dollars < 0.1 ? 4 : 2)}`;
}

/** Formats a count in short form: `812`, `12.3 k`, `1.2 M`. */
export function count(number) {
  if (number < 1000) return String(number ?? 0);
  return number < 1_000_000 ? `${(number / 1000).toFixed(1)} k` : `${(number / 1_000_000).toFixed(1)} M`;
}

/** Formats token use: `1.2 k in, 80 out`. No provider counted `estimated` of the tokens. */
export function used({ input_tokens: input, output_tokens: output }, estimated = 0) {
  const share = estimated === input + output ? ", an estimate" : `, ${count(estimated)} of them an estimate`;
  return `${count(input)} in, ${count(output)} out${estimated ? share : ""}`;
}

/** Returns the time zone of a schedule; an interval has none. */
export function zoned(schedule, zone) {
  return zone && !schedule?.startsWith("every ") ? ` ${zone}` : "";
}

/** Formats a number of bytes; empty if it is unknown. */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "";
  return bytes < 1000 ? `${bytes} B` : `${count(bytes)}B`;
}

/** Formats a number with the singular or plural of a noun. */
export function many(number, one, more = `${one}s`) {
  return `${number} ${number === 1 ? one : more}`;
}

/** Returns the state of a run as a shape, a word and a tone with the same meaning. */
export function standing(run) {
  const outcome = run.outcome;
  if (run.pending > 0) return { shape: "?", word: "waits for you", tone: "wait" };
  if (run.state === "queued") return { shape: "◌", word: "queued", tone: "faint" };
  if (run.state === "running") return { shape: "▶", word: "running", tone: "busy" };
  if (run.state === "lost") return { shape: "?", word: `lost on ${run.machine}`, tone: "warn" };
  if (run.state === "interrupted") return { shape: "‖", word: "interrupted", tone: "warn" };
  return outcome ? ended(outcome) : { shape: "·", word: run.state ?? "", tone: "faint" };
}

// The labels of src/verdict/reason.rs; a test compares them.
const REASONS = {
  verified: "verified",
  skipped: "not verified",
  gate_failed: "failed",
  stuck: "stuck",
  bad_input: "bad input",
  plan_failed: "not planned",
  provider_failed: "provider failed",
  refused: "refused",
  empty_response: "no answer",
  model_protocol: "invalid answers",
  max_turns: "turn limit",
  budget_tokens: "token limit",
  budget_money: "money limit",
  budget_time: "time limit",
  loop_detected: "loop",
  gate_errored: "checks not run",
  not_delivered: "not committed",
  no_sandbox: "no sandbox",
  gate_tampered: "tampered with",
  blocked: "blocked",
  io_error: "cannot write",
  internal: "internal error",
  cancelled: "cancelled",
};

/** Returns the reason of a run's end as text. */
export function reasonWords(reason) {
  return REASONS[reason] ?? String(reason ?? "ended");
}

/** Returns the end of a run as text. */
export function ended({ reason, verified, cancelled }) {
  const word = reasonWords(reason);
  if (cancelled) return { shape: "■", word: "cancelled", tone: "faint" };
  if (reason === "skipped") return { shape: "–", word: "not verified: skipped", tone: "warn" };
  return verified ? { shape: "✓", word, tone: "good" } : { shape: "✕", word, tone: "bad" };
}

/** Returns the state of a lane's step. */
export function step(status) {
  const known = {
    running: ["▶", "busy"],
    passed: ["✓", "good"],
    flaky: ["≈", "warn"],
    allowed_failure: ["!", "warn"],
    failed: ["✕", "bad"],
    timed_out: ["⧖", "bad"],
    errored: ["⚠", "bad"],
    cancelled: ["■", "faint"],
    skipped: ["–", "faint"],
    not_run: ["·", "faint"],
  };
  const [shape, tone] = known[status] ?? ["·", "faint"];
  return { shape, tone, word: String(status).replaceAll("_", " ") };
}
