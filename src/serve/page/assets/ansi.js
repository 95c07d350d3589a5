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

function coloured(text, style) {
  const parts = [];
  let from = 0;
  const add = (piece) => {
    if (piece) parts.push(style.size ? el("span", { class: classes(style) }, piece) : piece);
  };
  for (const found of text.matchAll(ESCAPES)) {
    add(text.slice(from, found.index));
    from = found.index + found[0].length;
    if (found[1] !== undefined) set(style, found[1]);
  }
  add(text.slice(from));
  return parts;
}

/** Returns the classes of a style. Inverse text has its colour as the background. */
function classes(style) {
  if (!style.has("inverse")) return [...style].join(" ");
  const rest = [...style].filter((name) => name !== "inverse" && !name.startsWith("on-"));
  const ink = rest.find((name) => name.startsWith("ink-"))?.slice("ink-".length) ?? "ink";
  return [...rest, `on-${ink}`].join(" ");
}

const MARKS = { 1: "bold", 2: "dim", 3: "italic", 4: "under", 7: "inverse", 9: "struck" };
const ENDS = { 22: ["bold", "dim"], 23: ["italic"], 24: ["under"], 27: ["inverse"], 29: ["struck"] };

/** Applies the codes of one escape to a style. */
function set(style, numbers) {
  const codes = numbers.replace(/([34]8):2::/g, "$1;2;").split(/[;:]/).map(Number);
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    const colour = (kind, number) => {
      for (const name of style) if (name.startsWith(kind)) style.delete(name);
      if (number !== null) style.add(`${kind}${number}`);
    };
    if (code === 0) style.clear();
    else if (MARKS[code]) style.add(MARKS[code]);
    else if (ENDS[code]) ENDS[code].forEach((mark) => style.delete(mark));
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) colour("ink-", code === 90 ? 8 : code % 10);
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) colour("on-", code % 10);
    else if (code === 39) colour("ink-", null);
    else if (code === 49) colour("on-", null);
    else if (code === 38 || code === 48) {
      const isIndex = codes[at + 1] === 5;
      colour(code === 38 ? "ink-" : "on-", isIndex ? ofIndex(codes[at + 2] ?? 0) : nearest(codes.slice(at + 2, at + 5)));
      at += isIndex ? 2 : 4;
    }
  }
}

/** Returns the basic colour of one of 256 colours. */
function ofIndex(index) {
  if (index < 16) return index === 8 ? 8 : index % 8;
  if (index >= 232) return nearest(Array(3).fill((index - 232) * 10 + 8));
  return nearest([36, 6, 1].map((step) => Math.floor((index - 16) / step) % 6 * 51));
}

/** Returns the closest basic colour. Only basic colours have enough contrast in light and dark. */
function nearest([red = 0, green = 0, blue = 0]) {
  const [least, most] = [Math.min(red, green, blue), Math.max(red, green, blue)];
  if (most - least < 48) return most < 64 ? 0 : most < 176 ? 8 : 7;
  const middle = (least + most) / 2;
  return (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
}
