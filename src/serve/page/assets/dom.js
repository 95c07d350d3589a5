// Elements and text. All content is set as text here: output of agents, models and files is never
// parsed as HTML.

const CONTROLS = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f";
const TURNS = "\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069";
const WIDTHLESS = "\\u00ad\\u180e\\u200b\\u2060-\\u2065\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}";
const UNSEEN = new RegExp(`[${CONTROLS}${TURNS}${WIDTHLESS}]`, "gu");

/** Shows control characters, direction marks and zero-width characters of a text by name. */
export function harmless(text) {
  return String(text ?? "")
    .replace(/\r\n/g, "\n")
    .replace(UNSEEN, (mark) => {
      const code = mark.codePointAt(0);
      if (code === 0x1b) return "⟨ESC⟩";
      return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
    });
}

/**
 * Creates an element from a name with classes (`p.faint`), attributes, listeners (`onclick`) and
 * children. A child that is not an element becomes text.
 */
export function el(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  set(element, attributes);
  fill(element, children);
  return element;
}

/** Creates an SVG element; all its attributes are text. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  fill(element, children);
  return element;
}

function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : harmless(value));
  }
}

function fill(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : harmless(child));
  }
}

/** Replaces the children of an element. */
export function show(element, ...children) {
  element.replaceChildren();
  fill(element, children);
}

/** Sets the text of an element if it differs, to avoid needless layout. */
export function say(element, text) {
  const wanted = harmless(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Creates a collapsed section; its content is created on first opening. */
export function folded(summary, make, attributes = {}) {
  const details = el("details", attributes, el("summary", {}, summary));
  const open = () => {
    if (details.open && details.children.length === 1) details.append(make());
  };
  details.addEventListener("toggle", open);
  if (details.open) open();
  return details;
}

/** Limits a function to one run per `ms` milliseconds, with one more run after the last call. */
export function throttled(run, ms) {
  let timer = null;
  let again = false;
  const fire = () => {
    timer = null;
    if (again) {
      again = false;
      start();
    }
  };
  const start = () => {
    timer = setTimeout(fire, ms);
    run();
  };
  return () => {
    if (timer === null) start();
    else again = true;
  };
}

/** Announces a text to screen readers. */
export function announce(text) {
  say(document.getElementById("news"), text);
}
