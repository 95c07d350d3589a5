// The timeline of a run: a row per attempt with its turns and its gate, and the spending above.
// Each bar links to its block in the story.

import { el, svg } from "./dom.js";
import { count, many, money, took } from "./words.js";

const WIDE = 1000;
const HIGH = 56;
const ROW = 22;
const GAP = 4;
const TONES = { passed: "good", failed: "bad", errored: "bad", tampered: "bad", running: "busy", base: "faint" };

/** Draws the timeline once a turn has begun. `go` shows a block; `lasted` is the time so far. */
export function timeline(story, lasted, go) {
  const rows = attempts(story);
  if (!rows.size) return null;
  const long = Math.max(lasted, story.spending.at(-1)?.at ?? 0, 1);
  const x = (at) => (Math.min(Math.max(at, 0) / long, 1) * WIDE).toFixed(1);
  const bars = [...rows.values()].flatMap((blocks, row) => blocks.map((block) => bar(block, row, x, long, story, go)));
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${WIDE} ${rows.size * ROW}`, class: "bars", preserveAspectRatio: "none", role: "group", "aria-label": "Attempts" },
    bars,
  );
  drawing.style.height = `${rows.size * ROW}px`;
  bars[0].setAttribute("tabindex", "0");
  drawing.addEventListener("keydown", (event) => move(event, bars));
  const names = [...rows.keys()].map((number) => el("span", {}, `Attempt ${number}`));
  return el(
    "figure.timeline",
    {},
    el("figcaption", {}, "Attempts, turns and gate over time"),
    spending(story.spending, x),
    el("div.names", {}, names),
    drawing,
    el("p.scale", {}, el("span", {}, "start"), el("span", {}, took(long))),
  );
}

/** Returns the turns and gates by attempt number. */
function attempts(story) {
  const rows = new Map();
  let number = 1;
  for (const block of story.blocks) {
    if (block.kind === "attempt") number = block.number;
    const isBar = (block.kind === "turn" && !block.of) || (block.kind === "gate" && block.state !== "base");
    if (!isBar || block.at === null || block.at === undefined) continue;
    rows.set(number, [...(rows.get(number) ?? []), block]);
  }
  return rows;
}

function bar(block, row, x, long, story, go) {
  const end = block.ms === null || block.ms === undefined ? long : block.at + block.ms;
  const tone = block.kind === "turn" ? (block.state === "discarded" ? "warn" : "turn") : (TONES[block.state] ?? "faint");
  const wide = Math.max(Number(x(end)) - Number(x(block.at)), 4);
  const name = block.kind === "turn" ? `Turn ${block.number}` : `Gate ${block.state}`;
  const cost = block.kind === "turn" ? spentBy(story.spending, end) - spentBy(story.spending, block.at) : 0;
  const calls = block.tools?.length ? many(block.tools.length, "call") : "";
  const words = [name, took(end - block.at), cost > 0 ? money(cost) : "", calls];
  const label = words.filter(Boolean).join(" · ");
  const place = { x: Math.min(Number(x(block.at)), WIDE - 4), y: row * ROW + GAP / 2, width: wide, height: ROW - GAP, rx: 2 };
  const made = svg("rect", { ...place, class: `bar ${tone}`, tabindex: -1, role: "link", "aria-label": label }, svg("title", {}, label));
  made.addEventListener("click", () => go(block));
  return made;
}

/** Returns the cost up to a time, in millionths of a dollar. */
function spentBy(points, at) {
  return points.filter((point) => point.at <= at + 50).at(-1)?.cost ?? 0;
}

/** Handles keys: arrows move between bars, Enter opens the block. All bars are one Tab stop. */
function move(event, bars) {
  const at = bars.indexOf(event.target);
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    return event.target.dispatchEvent(new MouseEvent("click"));
  }
  const next = bars[at + ({ ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key] ?? 0)];
  if (!next || next === bars[at]) return;
  event.preventDefault();
  bars[at].setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}

/** Draws cost over time, or tokens if no price is known; nothing before the first use. */
function spending(points, x) {
  const isPriced = points.some((point) => point.cost !== null && point.cost !== undefined);
  const value = (point) => (isPriced ? (point.cost ?? 0) : point.tokens);
  const last = points.at(-1);
  const isFree = !last || value(last) === 0;
  const y = (point) => (HIGH - 2 - (value(point) / value(last)) * (HIGH - 6)).toFixed(1);
  let line = `M0 ${HIGH - 2}`;
  if (!isFree) for (const point of points) line += `H${x(point.at)}V${y(point)}`;
  line += `H${WIDE}`;
  const what = isPriced ? "Cost" : "Tokens";
  const total = isPriced ? money(last.cost) : count(last?.tokens ?? 0);
  return [
    el("div.axis", {}, el("span", {}, isPriced ? total : `${total} tokens`), el("span", {}, isPriced ? "$0" : "0")),
    svg(
      "svg",
      { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "spending", role: "img", preserveAspectRatio: "none", "aria-label": `${what} over time: ${total}` },
      svg("path", { d: `${line}V${HIGH}H0Z`, class: "area" }),
      svg("path", { d: line, class: "line" }),
    ),
  ];
}
