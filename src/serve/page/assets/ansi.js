// Renders program output with its colours. Colour escapes become classes; all other escapes are
// removed. Output is never interpreted as markup.

import { el } from "./dom.js";

// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b\[([0-9;:]*)m|\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b\n]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-~]/g;

/** Returns the final text of a line, without the parts that a carriage return overwrote. */
function overwritten(line) {
  return line.replace(/\r+$/, "").split("\r").at(-1);
}

/** Returns a text as strings, and elements for its coloured parts. */
export function ansi(text) {
  return coloured(String(text ?? ""), new Set());
}

/** Returns each line of a text as strings and elements. A colour lasts until it is reset. */
export function ansiLines(text) {
  const style = new Set();
  const lines = String(text ?? "").split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => coloured(overwritten(line), style));
}

/** Returns a text without escapes. */
export function plain(text) {
  return String(text ?? "").replace(ESCAPES, "");
}

function coloured(text, style) {
  const parts = [];
  let from = 0;
  const add = (piece) => {
    if (piece) parts.push(style.size ? el("span", { class: [...style].join(" ") }, piece) : piece);
  };
  for (const found of text.matchAll(ESCAPES)) {
    add(text.slice(from, found.index));
    from = found.index + found[0].length;
    if (found[1] !== undefined) set(style, found[1]);
  }
  add(text.slice(from));
  return parts;
}

const MARKS = { 1: "bold", 2: "dim", 3: "italic", 4: "under" };

/** Applies the codes of one escape to a style. */
function set(style, numbers) {
  const codes = numbers.split(/[;:]/).map(Number);
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    const colour = (number) => {
      for (const name of style) if (name.startsWith("ink-")) style.delete(name);
      if (number !== null) style.add(`ink-${number}`);
    };
    if (code === 0) style.clear();
    else if (MARKS[code]) style.add(MARKS[code]);
    else if (code === 22) ["bold", "dim"].forEach((mark) => style.delete(mark));
    else if (code === 23) style.delete("italic");
    else if (code === 24) style.delete("under");
    else if (code >= 30 && code <= 37) colour(code - 30);
    else if (code >= 90 && code <= 97) colour(code - 90);
    else if (code === 39) colour(null);
    else if (code === 38 || code === 48) {
      const isIndex = codes[at + 1] === 5;
      if (code === 38 && isIndex && codes[at + 2] < 16) colour(codes[at + 2] % 8);
      at += isIndex ? 2 : 4;
    }
  }
}
