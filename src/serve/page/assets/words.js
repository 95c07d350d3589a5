// Numbers, times and states in words.

const UNITS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1000, "s"],
];

/** How long something took: `340 ms`, `4.2 s`, `3 m 5 s`, `2 h 10 m`. */
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

/** How far away a time is: `just now`, `4 m ago`, `in 2 h`. */
export function away(time, now = Date.now()) {
  const ms = Date.parse(time) - now;
  if (Number.isNaN(ms)) return "";
  const size = Math.abs(ms);
  if (size < 5000) return "just now";
  const [unit, name] = UNITS.find(([unit]) => size >= unit);
  const count = `${Math.floor(size / unit)} ${name}`;
  return ms < 0 ? `${count} ago` : `in ${count}`;
}

/** A time as the clock of the machine in front has it. */
export function clock(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** Money in millionths of a dollar. */
export function money(micros) {
  if (micros === null || micros === undefined) return "";
  const dollars = micros / 1_000_000;
  return `$${dollars.toFixed(dollars > 0 && dollars < 0.1 ? 4 : 2)}`;
}

/** A count, shortened: `812`, `12.3 k`, `1.2 M`. */
export function count(number) {
  if (number < 1000) return String(number ?? 0);
  return number < 1_000_000 ? `${(number / 1000).toFixed(1)} k` : `${(number / 1_000_000).toFixed(1)} M`;
}

/** What a run used: `1.2 k in, 80 out`; `estimated` of the tokens were counted by no provider. */
export function used({ input_tokens: input, output_tokens: output }, estimated = 0) {
  const share = estimated === input + output ? ", an estimate" : `, ${count(estimated)} of them an estimate`;
  return `${count(input)} in, ${count(output)} out${estimated ? share : ""}`;
}

/** The zone that a schedule goes by: an interval goes by none. */
export function zoned(schedule, zone) {
  return zone && !schedule?.startsWith("every ") ? ` ${zone}` : "";
}

/** A number of bytes; nothing where it is not known. */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "";
  return bytes < 1000 ? `${bytes} B` : `${count(bytes)}B`;
}

/** One thing or many. */
export function many(number, one, more = `${one}s`) {
  return `${number} ${number === 1 ? one : more}`;
}

/** How a run stands: a shape, a word and a tone, which say the same. */
export function standing(run) {
  const outcome = run.outcome;
  if (run.pending > 0) return { shape: "?", word: "waits for you", tone: "wait" };
  if (run.state === "queued") return { shape: "◌", word: "queued", tone: "faint" };
  if (run.state === "running") return { shape: "▶", word: "running", tone: "busy" };
  if (run.state === "lost") return { shape: "?", word: `lost: ${run.machine} is silent`, tone: "warn" };
  if (run.state === "interrupted") return { shape: "‖", word: "interrupted", tone: "warn" };
  return outcome ? ended(outcome) : { shape: "·", word: run.state ?? "", tone: "faint" };
}

const REASONS = {
  max_turns: "turn limit",
  budget_money: "money limit",
  budget_tokens: "token limit",
  budget_time: "time limit",
  io_error: "state not writable",
};

/** Why a run ended, in words. */
export function reasonWords(reason) {
  return REASONS[reason] ?? String(reason ?? "ended").replaceAll("_", " ");
}

/** How a run ended. */
export function ended({ reason, verified, cancelled }) {
  const word = reasonWords(reason);
  if (cancelled) return { shape: "■", word: "cancelled", tone: "faint" };
  if (reason === "skipped") return { shape: "–", word: "not verified: skipped", tone: "warn" };
  return verified ? { shape: "✓", word, tone: "good" } : { shape: "✕", word, tone: "bad" };
}

/** How a step of a lane stands. */
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
