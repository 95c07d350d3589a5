// Elements and text. Everything that is shown is made here and set as text: what agents, models and files say is never read as HTML.

const CONTROLS = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f";
const TURNS = "\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069";
const WIDTHLESS = "\\u00ad\\u180e\\u200b\\u2060-\\u2065\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}";
const UNSEEN = new RegExp(`[${CONTROLS}${TURNS}${WIDTHLESS}]`, "gu");

/** Text in which nothing hides: control characters, marks that turn the direction of writing and marks without a width are shown by name. */
export function harmless(text) {
  return String(text ?? "")
    .replace(/\r\n/g, "\n")
    .replace(UNSEEN, (mark) => {
      const code = mark.codePointAt(0);
      if (code === 0x1b) return "⟨ESC⟩";
      return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
    });
}

/** An element: its name with classes (`p.faint`), attributes and listeners (`onclick`), children. A child that is no element is text. */
export function el(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  set(element, attributes);
  fill(element, children);
  return element;
}

/** The same of SVG, where every attribute is text. */
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

/** Puts other children into an element. */
export function show(element, ...children) {
  element.replaceChildren();
  fill(element, children);
}

/** Sets a text where it is another one, so that nothing is laid out in vain. */
export function say(element, text) {
  const wanted = harmless(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Something folded, whose content is made when it is first opened. */
export function folded(summary, make, attributes = {}) {
  const details = el("details", attributes, el("summary", {}, summary));
  const open = () => {
    if (details.open && details.children.length === 1) details.append(make());
  };
  details.addEventListener("toggle", open);
  if (details.open) open();
  return details;
}

/** Has a function run at most once in so many milliseconds, and once more after the last call. */
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

/** Says something to who hears the page instead of seeing it. */
export function announce(text) {
  say(document.getElementById("news"), text);
}
