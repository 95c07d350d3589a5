// Differences: read from their text, and shown line by line, in one column or with both sides beside each other. A line says with its
// sign what its colour says.

import { el } from "./dom.js";
import { highlight, language } from "./syntax.js";

const MOST_LINES = 4000;

/** The files of a patch: their names, how many lines changed, and their rows. */
export function read(text) {
  return text
    .split(/^(?=diff --git )/m)
    .filter((part) => part.trim())
    .map(file);
}

function file(part) {
  const [head, body] = cut(part);
  const named = /^diff --git (?:"?a\/(.*?)"?) (?:"?b\/(.*?)"?)$/m.exec(head);
  const state = /^new file/m.test(head) ? "new" : /^deleted file/m.test(head) ? "deleted" : /^rename /m.test(head) ? "renamed" : "";
  const rows = lines(body);
  const count = (kind) => rows.filter((row) => row.kind === kind).length;
  const notes = head.split("\n").filter((line) => /^(old mode|new mode|Binary |GIT binary)/.test(line));
  return { path: named?.[2] ?? "difference", was: named?.[1], state, notes, rows, added: count("added"), removed: count("removed") };
}

function cut(part) {
  const at = part.search(/^@@/m);
  return at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at)];
}

/** The rows of hunks: each a kind, a text, and its number on either side. */
function lines(body) {
  let [old, now] = [0, 0];
  const rows = [];
  for (const line of body.replace(/\n$/, "").split("\n")) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      [old, now] = [Number(hunk[1]), Number(hunk[2])];
      rows.push({ kind: "hunk", text: line });
    } else if (line.startsWith("+")) rows.push({ kind: "added", text: line.slice(1), now: now++ });
    else if (line.startsWith("-")) rows.push({ kind: "removed", text: line.slice(1), old: old++ });
    else if (line.startsWith("\\")) rows.push({ kind: "hunk", text: line });
    else if (line || body) rows.push({ kind: "same", text: line.slice(1), old: old++, now: now++ });
  }
  return body ? rows : [];
}

/** The difference of one file as a table. */
export function table({ path, rows, notes }, isSplit) {
  const rules = language(path);
  const shown = rows.slice(0, MOST_LINES);
  const body = isSplit ? pairs(shown).map((pair) => split(pair, rules)) : shown.map((row) => unified(row, rules));
  const more = rows.length - shown.length;
  return el(
    "div",
    {},
    notes?.map((note) => el("p.faint.note", {}, note)),
    el(isSplit ? "table.code.sides" : "table.code", { "aria-label": `Difference of ${path}` }, columns(isSplit), el("tbody", {}, body)),
    more > 0 ? el("p.faint", {}, `… and ${more} lines more: the patch has all of them`) : null,
  );
}

function columns(isSplit) {
  const all = isSplit ? ["no", "text", "no", "text"] : ["no", "no", "text"];
  return el("colgroup", {}, all.map((name) => el(`col.${name}`)));
}

const SIGNS = { added: "+", removed: "−", same: " " };

function number(value) {
  return el("td.no", { "data-no": value ?? "" });
}

function code(row, rules) {
  return el("td.text", {}, el("span.sign", {}, SIGNS[row.kind]), highlight(row.text, rules));
}

function unified(row, rules) {
  if (row.kind === "hunk") return el("tr.hunk", {}, el("td", { colspan: 3 }, row.text));
  return el(`tr.${row.kind}`, {}, number(row.old), number(row.now), code(row, rules));
}

/** Rows side by side: what was removed beside what was added in its place. */
function pairs(rows) {
  const all = [];
  for (let at = 0; at < rows.length; ) {
    const run = (kind) => {
      const from = at;
      while (rows[at]?.kind === kind) at += 1;
      return rows.slice(from, at);
    };
    if (rows[at].kind === "same" || rows[at].kind === "hunk") {
      all.push([rows[at], rows[at]]);
      at += 1;
      continue;
    }
    const [gone, come] = [run("removed"), run("added")];
    for (let row = 0; row < Math.max(gone.length, come.length); row += 1) all.push([gone[row] ?? null, come[row] ?? null]);
  }
  return all;
}

function split([left, right], rules) {
  if (left?.kind === "hunk") return el("tr.hunk", {}, el("td", { colspan: 4 }, left.text));
  const side = (row, no) => {
    const cells = row ? [number(no), code(row, rules)] : [number(), el("td.text")];
    cells.forEach((cell) => cell.classList.add(row?.kind ?? "none"));
    return cells;
  };
  return el("tr", {}, side(left, left?.old), side(right, right?.now));
}

/** A difference of one file that comes without its head, as tools tell it. */
export function diff(text, path = "") {
  return table({ path, rows: lines(cut(text)[1] || text), notes: [] }, false);
}
