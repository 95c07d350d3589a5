// Small drawings: what a run has cost over time, and what its time went into. Each has its numbers in words beside it.

import { el, svg } from "./dom.js";
import { count, money, took } from "./words.js";

const WIDE = 320;
const HIGH = 64;

/** Cost over time, or tokens where no price is known; null where nothing was used yet. */
export function spending(points, now) {
  const isPriced = points.some((point) => point.cost !== null && point.cost !== undefined);
  const value = (point) => (isPriced ? (point.cost ?? 0) : point.tokens);
  const last = points.at(-1);
  if (!last || value(last) === 0) return null;
  const long = Math.max(now, last.at, 1);
  const x = (at) => ((at / long) * WIDE).toFixed(1);
  const y = (point) => (HIGH - 2 - (value(point) / value(last)) * (HIGH - 6)).toFixed(1);
  let line = `M0 ${HIGH - 2}`;
  for (const point of points) line += `H${x(point.at)}V${y(point)}`;
  line += `H${WIDE}`;
  const what = isPriced ? "Cost" : "Tokens";
  const total = isPriced ? money(last.cost) : count(last.tokens);
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDE} ${HIGH}`,
      class: "spending",
      role: "img",
      preserveAspectRatio: "none",
      "aria-label": `${what} over time: ${total} after ${took(long)}`,
    },
    svg("path", { d: `${line}V${HIGH}H0Z`, class: "area" }),
    svg("path", { d: line, class: "line" }),
  );
  return el(
    "figure",
    {},
    el("figcaption", {}, `${what} over time`),
    drawing,
    el("p.scale", {}, el("span", {}, "start"), el("span", {}, `${total} · ${took(long)}`)),
  );
}

const PARTS = { model: "model", tools: "tools", gate: "gate", waiting: "waiting", other: "other" };

/** What the time went into, from start to end: stretches of `{part, ms}`. */
export function course(stretches) {
  const total = stretches.reduce((sum, { ms }) => sum + ms, 0);
  if (total === 0) return null;
  let at = 0;
  const bars = stretches.map(({ part, ms }) => {
    const bar = svg("rect", {
      x: ((at / total) * WIDE).toFixed(2),
      width: Math.max((ms / total) * WIDE, 0.5).toFixed(2),
      y: 0,
      height: 14,
      class: `part-${PARTS[part] ?? "other"}`,
    });
    at += ms;
    return bar;
  });
  const spent = Object.keys(PARTS).map((part) => [
    part,
    stretches.filter((stretch) => stretch.part === part).reduce((sum, { ms }) => sum + ms, 0),
  ]);
  const legend = spent
    .filter(([, ms]) => ms > 0)
    .map(([part, ms]) =>
      el(
        "li",
        {},
        svg(
          "svg",
          { viewBox: "0 0 10 10", class: "key", "aria-hidden": "true" },
          svg("rect", { width: 10, height: 10, class: `part-${part}` }),
        ),
        `${part} ${took(ms)}`,
      ),
    );
  const drawing = svg("svg", { viewBox: `0 0 ${WIDE} 14`, class: "course", preserveAspectRatio: "none", "aria-hidden": "true" }, bars);
  return el("figure", {}, el("figcaption", {}, `Where the time went: ${took(total)}`), drawing, el("ul.legend", {}, legend));
}
