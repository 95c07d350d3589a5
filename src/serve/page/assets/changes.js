// The changes of a run: a tree of the files and the diff of each file, side by side if there is
// room.

import { read, table } from "./diff.js";
import { el, folded, show } from "./dom.js";
import { many } from "./words.js";

/** The number of lines of all files together up to which all diffs are expanded. */
const MOST_OPEN = 3000;
const ROOM = matchMedia("(min-width: 72rem)");

/** Returns the element for a patch. */
export function changes(text) {
  const files = read(text);
  if (!files.length) return el("p.faint", {}, "Nothing was changed.");
  const sum = (what) => files.reduce((sum, file) => sum + file[what], 0);
  const isSmall = files.reduce((sum, file) => sum + file.rows.length, 0) <= MOST_OPEN;
  const list = el("div.files");
  const places = new Map();
  const sides = el("input", { type: "checkbox", name: "sides", checked: ROOM.matches, onchange: () => draw() });
  const draw = () => {
    const parts = files.map((file) => {
      const isPaired = () => sides.checked && file.added > 0 && file.removed > 0;
      const part = folded(heading(file), () => table(file, isPaired()), { class: "file", open: isSmall, tabindex: "-1" });
      places.set(file, part);
      return part;
    });
    show(list, parts);
  };
  draw();
  const fit = () => {
    if (!list.isConnected) return ROOM.removeEventListener("change", fit);
    sides.checked = ROOM.matches;
    draw();
  };
  ROOM.addEventListener("change", fit);
  const go = (file) => {
    const part = places.get(file);
    part.open = true;
    part.scrollIntoView({ block: "start" });
    part.focus({ preventScroll: true });
  };
  return el(
    "div.changes",
    {},
    el(
      "div.line",
      {},
      el("span", {}, `${many(files.length, "file")} `, counts({ added: sum("added"), removed: sum("removed") })),
      el("label.follow.sides", {}, sides, " Side by side"),
    ),
    el("div.panes", {}, el("nav.tree", { "aria-label": "Changed files" }, tree(files, go)), list),
  );
}

function counts({ added, removed }) {
  return [el("span.good.number", {}, `+${added}`), " ", el("span.bad.number", {}, `−${removed}`)];
}

function heading(file) {
  const was = file.state === "renamed" ? `${file.was} → ` : "";
  return el("span", {}, el("code", {}, was, file.path), " ", counts(file), file.state ? el("span.faint", {}, ` ${file.state}`) : "");
}

/** Returns the tree of files. A folder with only one subfolder is merged with it. */
function tree(files, go) {
  const root = { folders: new Map(), files: [] };
  for (const file of files) {
    let at = root;
    for (const name of file.path.split("/").slice(0, -1)) {
      if (!at.folders.has(name)) at.folders.set(name, { folders: new Map(), files: [] });
      at = at.folders.get(name);
    }
    at.files.push(file);
  }
  return branch(root, go);
}

function branch({ folders, files }, go) {
  const folder = ([name, inside]) => {
    while (inside.folders.size === 1 && !inside.files.length) {
      const [[next, deeper]] = inside.folders;
      [name, inside] = [`${name}/${next}`, deeper];
    }
    return el("li", {}, el("span.faint", {}, `${name}/`), branch(inside, go));
  };
  const leaf = (file) =>
    el("li", {}, el("button.plain", { type: "button", onclick: () => go(file) }, file.path.split("/").at(-1)), " ", counts(file));
  return el("ul", {}, [...folders].map(folder), files.map(leaf));
}
