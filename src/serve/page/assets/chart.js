// The time of a run by activity: a bar of stretches, and the same as text.

import { el, svg } from "./dom.js";
import { took } from "./words.js";

const WIDE = 320;

const PARTS = { model: "model", tools: "tools", gate: "gate", waiting: "waiting", other: "other" };

/** Draws the activities from start to end; a stretch is `{part, ms}`. */
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
