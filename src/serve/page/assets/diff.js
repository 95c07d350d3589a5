// Diffs: parsed from text and shown line by line, unified or side by side. The sign of a line has
// the same meaning as its colour.

import { el } from "./dom.js";
import { highlight, language } from "./syntax.js";

const MOST_LINES = 4000;

/**
 * Parses the files of a patch: names, numbers of changed lines, and rows. Only `\n` ends a line,
 * because content may contain every other control character.
 */
export function read(text) {
  const parts = [];
  for (const line of text.replace(/\n$/, "").split("\n")) {
    if (line.startsWith("diff --git ") || parts.length === 0) parts.push([]);
    parts.at(-1).push(line);
  }
  return parts.filter((part) => part.some((line) => line.trim())).map(file);
}

function file(part) {
  const at = part.findIndex((line) => line.startsWith("@@"));
  const [head, body] = at < 0 ? [part, []] : [part.slice(0, at), part.slice(at)];
  const has = (start) => head.some((line) => line.startsWith(start));
  const state = has("new file") ? "new" : has("deleted file") ? "deleted" : has("rename ") ? "renamed" : "";
  const rows = lines(body);
  const count = (kind) => rows.filter((row) => row.kind === kind).length;
  const notes = head.filter((line) => /^(old mode|new mode|Binary |GIT binary)/.test(line));
  const [was, path] = names(head);
  return { path: path ?? "difference", was, state, notes, rows, added: count("added"), removed: count("removed") };
}

/** Returns the old and new name of a file from its header. */
function names(head) {
  const after = (start) => head.find((line) => line.startsWith(start))?.slice(start.length);
  const renamed = ["rename from ", "rename to "].map(after);
  if (renamed[0] !== undefined && renamed[1] !== undefined) return renamed.map(unquoted);
  const both = head[0]?.startsWith("diff --git ") ? head[0].slice("diff --git ".length) : "";
  // Both names are equal, so each one is half of the text.
  const half = both.slice(0, (both.length - 1) / 2);
  const name = half ? unquoted(half).replace(/^a\//, "") : undefined;
  return [name, name];
}

const ESCAPED = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 };

/** Decodes a name that git quoted, with bytes in octal. */
function unquoted(name) {
  if (!name.startsWith('"')) return name;
  const bytes = [];
  for (const [, octal, escaped, plain] of name.slice(1, -1).matchAll(/\\([0-7]{3})|\\([^])|([^\\]+)/g)) {
    if (octal) bytes.push(parseInt(octal, 8));
    else if (escaped) bytes.push(ESCAPED[escaped] ?? escaped.charCodeAt(0));
    else bytes.push(...new TextEncoder().encode(plain));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/**
 * Parses the rows of hunks: a kind, a text, and the line numbers on both sides. Lines beyond a
 * hunk's length are shown unchanged. `most` is the number of lines allowed before the first hunk.
 */
function lines(body, most = 0) {
  let [old, now, olds, news] = [0, 0, most, most];
  const rows = [];
  for (const line of body) {
    const hunk = olds > 0 || news > 0 ? null : /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (hunk) {
      [old, olds, now, news] = [1, 2, 3, 4].map((at) => Number(hunk[at] ?? 1));
      rows.push({ kind: "hunk", text: line });
    } else if (line.startsWith("+") && news > 0) {
      rows.push({ kind: "added", text: line.slice(1), now: now++ });
      news -= 1;
    } else if (line.startsWith("-") && olds > 0) {
      rows.push({ kind: "removed", text: line.slice(1), old: old++ });
      olds -= 1;
    } else if (line.startsWith(" ") && olds > 0 && news > 0) {
      rows.push({ kind: "same", text: line.slice(1), old: old++, now: now++ });
      [olds, news] = [olds - 1, news - 1];
    } else rows.push({ kind: "hunk", text: line });
  }
  return rows;
}

/** Returns the diff of one file as a table. */
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
    more > 0 ? el("p.faint", {}, `… and ${more} more lines: the patch has all lines`) : null,
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

/** Pairs rows for two columns: removed lines beside the added lines that replace them. */
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

/** Shows the diff of one file without a header, as tools return it. */
export function diff(text, path = "") {
  const all = text.replace(/\n$/, "").split("\n");
  const at = all.findIndex((line) => line.startsWith("@@"));
  return table({ path, rows: at < 0 ? lines(all, Infinity) : lines(all.slice(at)), notes: [] }, false);
}
