// The complete log of a step: numbered and coloured lines, a search, and an address for each line.

import { text } from "./api.js";
import { ansiLines } from "./ansi.js";
import { el, say, show, throttled } from "./dom.js";
import { entitle } from "./waiting.js";
import { many } from "./words.js";

/** The number of lines that are drawn at once. */
const PART = 5000;
/** The largest number of lines that are shown. */
const MOST_LINES = 20000;

/** The largest number of lines in which the found text is painted. */
const MOST_PAINTED = 2000;

/** Returns the path of a run's artifact. */
export function artifact(run, name) {
  return `/v1/runs/${[run, "artifacts", ...name.split("/")].map(encodeURIComponent).join("/")}`;
}

/** Returns the page address of a log, or of one of its lines. */
export function place(run, name, line = null) {
  const file = name.split("/").map(encodeURIComponent).join("/");
  return `#/runs/${encodeURIComponent(run)}/${file}${line ? `?line=${line}` : ""}`;
}

/** Shows the page of a log; `given` may contain a line and a search text. */
export function log(main, run, name, given) {
  entitle(name.split("/").at(-1));
  const page = new Log(run, name, given);
  show(main, page.element);
  page.load(Number(given.get("line")) || null, given.get("q") ?? "");
  return () => {
    page.closed = true;
    paint([]);
  };
}

/** Paints ranges of text. Browsers without this feature mark only the lines. */
function paint(ranges) {
  if (globalThis.CSS?.highlights && globalThis.Highlight) CSS.highlights.set("found", new Highlight(...ranges));
}

/** Returns the ranges of a line that contain a lower-case text. It may span coloured parts. */
function places(line, wanted) {
  const nodes = [];
  const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  for (let from = 0; walk.nextNode(); from += walk.currentNode.length) nodes.push({ node: walk.currentNode, from });
  const at = (offset) => {
    const { node, from } = nodes.findLast((one) => one.from <= offset);
    return [node, Math.min(offset - from, node.length)];
  };
  const whole = line.textContent.toLowerCase();
  const ranges = [];
  for (let start = whole.indexOf(wanted); start >= 0; start = whole.indexOf(wanted, start + wanted.length)) {
    const range = new Range();
    range.setStart(...at(start));
    range.setEnd(...at(start + wanted.length - 1));
    range.setEnd(range.endContainer, Math.min(range.endOffset + 1, range.endContainer.length));
    ranges.push(range);
  }
  return ranges;
}

class Log {
  constructor(run, name) {
    Object.assign(this, { run, name, lines: [], found: [], at: -1, closed: false });
    this.list = el("ol.log", { "aria-label": "Lines" });
    this.count = el("span.faint", { role: "status" });
    this.more = el("button", { type: "button", hidden: true, onclick: () => this.draw(PART) }, "More lines");
    const change = throttled(() => this.search(), 200);
    this.input = el("input", { type: "search", name: "q", autocomplete: "off", placeholder: "Text in this log…", oninput: change });
    const step = (by) => el("button", { type: "button", onclick: () => this.step(by) }, by > 0 ? "Next" : "Previous");
    this.element = el(
      "div",
      {},
      el("p.way", {}, el("a", { href: `#/runs/${encodeURIComponent(run)}` }, "← Run")),
      el("h1", { tabindex: "-1" }, name.replace(/^logs\//, "")),
      el(
        "form.filter.stays",
        { role: "search", onsubmit: (event) => (event.preventDefault(), this.step(1)) },
        el("label.grow", {}, el("span", {}, "Search"), this.input),
        step(-1),
        step(1),
        el("a.button", { href: artifact(run, name), download: "" }, "Download"),
        this.count,
      ),
      this.list,
      el("p.more", {}, this.more),
    );
  }

  async load(line, wanted) {
    try {
      const whole = await text(artifact(this.run, this.name));
      if (this.closed) return;
      const shown = whole.split("\n", MOST_LINES + 1);
      const isWhole = shown.length <= MOST_LINES;
      const part = isWhole ? whole : shown.slice(0, MOST_LINES).join("\n");
      this.lines = ansiLines(part);
      this.texts = this.lines.map((parts) => parts.map((piece) => piece.textContent ?? piece).join("").toLowerCase());
      if (!isWhole) this.more.before(el("p.faint", {}, `Only the first ${MOST_LINES} lines are shown: the download has all.`));
    } catch (error) {
      return show(this.list, el("li.bad", { role: "alert" }, error.message));
    }
    say(this.count, many(this.lines.length, "line"));
    this.draw(Math.max(PART, line ?? 0));
    if (line) this.lead(line - 1);
    if (wanted) {
      this.input.value = wanted;
      this.search();
    }
  }

  /** Draws `count` more lines. */
  draw(count) {
    const from = this.list.children.length;
    const fresh = document.createDocumentFragment();
    this.lines.slice(from, from + count).forEach((parts, at) => fresh.append(this.line(parts, from + at + 1)));
    this.list.append(fresh);
    this.more.hidden = this.list.children.length >= this.lines.length;
  }

  line(parts, number) {
    const go = (event) => {
      event.preventDefault();
      history.replaceState(null, "", place(this.run, this.name, number));
      this.lead(number - 1);
    };
    const href = place(this.run, this.name, number);
    return el("li", {}, el("a.no", { href, "data-no": number, "aria-label": `Line ${number}`, onclick: go }), el("code", {}, parts));
  }

  /** Highlights a line. */
  lead(at) {
    this.list.querySelector(".hit")?.classList.remove("hit");
    if (at >= this.list.children.length) this.draw(at - this.list.children.length + PART);
    const line = this.list.children[at];
    line?.classList.add("hit");
    line?.scrollIntoView({ block: "center" });
  }

  search() {
    const wanted = this.input.value.toLowerCase();
    for (const at of this.found) this.list.children[at]?.classList.remove("match");
    this.found = wanted ? this.texts.flatMap((line, at) => (line.includes(wanted) ? [at] : [])) : [];
    this.at = -1;
    if (this.found.length && this.found.at(-1) >= this.list.children.length) this.draw(this.found.at(-1));
    for (const at of this.found) this.list.children[at]?.classList.add("match");
    paint(this.found.slice(0, MOST_PAINTED).flatMap((at) => places(this.list.children[at].lastChild, wanted)));
    say(this.count, wanted ? `${many(this.found.length, "matching line")}` : many(this.lines.length, "line"));
    if (this.found.length) this.step(1);
  }

  step(by) {
    if (!this.found.length) return;
    this.at = (this.at + by + this.found.length) % this.found.length;
    this.lead(this.found[this.at]);
    say(this.count, `${this.at + 1} of ${many(this.found.length, "matching line")}`);
  }
}
