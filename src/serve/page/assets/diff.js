// A unified diff in colours: each line says with its first character what its colour says.

import { el, folded } from "./dom.js";

const MOST_LINES = 4000;

/** The lines of a diff, coloured. */
export function diff(text) {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const shown = lines.slice(0, MOST_LINES);
  const pre = el(
    "pre.diff",
    { tabindex: "0", "aria-label": "Difference" },
    shown.map((line) => el(kind(line), {}, `${line}\n`)),
  );
  if (lines.length > shown.length) pre.append(el("span.faint", {}, `… and ${lines.length - shown.length} lines more`));
  return pre;
}

function kind(line) {
  if (/^(diff |index |--- |\+\+\+ |new file|deleted file|similarity|rename |old mode|new mode|Binary )/.test(line)) return "span.head";
  if (line.startsWith("@@")) return "span.hunk";
  if (line.startsWith("+")) return "span.added";
  return line.startsWith("-") ? "span.removed" : "span";
}

/** A diff of many files: each is folded, and says how much of it changed. */
export function files(text) {
  const parts = text.split(/^(?=diff --git )/m).filter((part) => part.trim());
  return parts.map((part) => {
    const name = /^diff --git (?:"?a\/(.*?)"?) (?:"?b\/(.*?)"?)$/m.exec(part)?.[2] ?? "difference";
    const body = part.slice(Math.max(part.indexOf("\n@@"), 0));
    const count = (sign) => body.split("\n").filter((line) => line.startsWith(sign)).length;
    const summary = el(
      "span",
      {},
      el("code", {}, name),
      " ",
      el("span.good.number", {}, `+${count("+")}`),
      " ",
      el("span.bad.number", {}, `−${count("-")}`),
    );
    return folded(summary, () => diff(part), { class: "file", open: parts.length < 4 });
  });
}
