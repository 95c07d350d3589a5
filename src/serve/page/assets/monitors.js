// Monitors: the health of expected events. The history is a strip of marks that differ in shape and
// height as well as in colour.

import { get, path } from "./api.js";
import { listen } from "./bell.js";
import { el, folded, show, svg, throttled } from "./dom.js";
import { entitle } from "./waiting.js";
import { away, clock, many, took, zoned } from "./words.js";

const MOST = 50;
const HEALTH = { healthy: ["✓", "good"], late: ["◔", "warn"], missed: ["○", "bad"], failing: ["✕", "bad"], timed_out: ["⧖", "bad"] };

/** Shows the page of the monitors, scrolled to the monitor with this slug. */
export function monitors(main, slug) {
  entitle("Monitors");
  const list = el("ul.cards");
  const fault = el("p.bad", { role: "alert", hidden: true });
  show(main, el("h1", { tabindex: "-1" }, "Monitors"), legend(), fault, list);
  const cards = new Map();
  let isFirst = true;
  const load = throttled(async () => {
    try {
      const found = (await get("/v1/monitors")).monitors;
      fault.hidden = true;
      put(list, cards, found);
      if (isFirst && slug) cards.get(slug)?.element.scrollIntoView();
      isFirst = false;
    } catch (error) {
      show(fault, error.message);
      fault.hidden = false;
    }
  }, 500);
  load();
  const stop = listen((news) => ["monitor", "reset"].includes(news.type) && load());
  const clockwork = setInterval(load, 60_000);
  return () => {
    stop();
    clearInterval(clockwork);
  };
}

function put(list, cards, found) {
  const slugs = new Set(found.map(({ slug }) => slug));
  for (const [slug, card] of cards) {
    if (slugs.has(slug)) continue;
    card.element.remove();
    cards.delete(slug);
  }
  if (!found.length) {
    cards.clear();
    return show(
      list,
      el(
        "li.faint",
        {},
        "No monitors. A scheduled task gets a monitor through its front matter; ",
        el("code", {}, "fledge monitors add"),
        " creates a monitor for anything that can send a request.",
      ),
    );
  }
  if (!cards.size) list.replaceChildren();
  for (const monitor of found) {
    if (!cards.has(monitor.slug)) {
      const card = new Card();
      cards.set(monitor.slug, card);
      list.append(card.element);
    }
    cards.get(monitor.slug).put(monitor);
  }
}

class Card {
  constructor() {
    this.title = el("h2");
    this.health = el("p.health");
    this.facts = el("p.facts.faint");
    this.strip = el("div");
    this.checkins = [];
    const past = folded("Check-ins", () => this.table());
    past.addEventListener("toggle", () => past.open && past.lastChild.replaceWith(this.table()));
    this.element = el("li.card", {}, el("div.line", {}, this.title, this.health), this.facts, this.strip, past);
  }

  put(monitor) {
    const [shape, tone] = HEALTH[monitor.health] ?? ["·", "faint"];
    const { schedule, zone, margin_minutes, max_runtime_minutes, on_change, task_gone } = monitor;
    show(this.title, monitor.name || monitor.slug);
    show(
      this.health,
      el("strong", { class: tone }, `${shape} ${String(monitor.health).replaceAll("_", " ")}`),
      monitor.since ? el("span.faint", { title: clock(monitor.since) }, ` since ${away(monitor.since)}`) : "",
    );
    const expected = monitor.next_expected_at;
    show(
      this.facts,
      el("code", {}, schedule),
      zoned(schedule, zone),
      [
        `margin ${took(margin_minutes * 60_000)}`,
        max_runtime_minutes ? `at most ${took(max_runtime_minutes * 60_000)}` : "",
        on_change ? `notifies by ${on_change}` : "",
        task_gone ? "its task is gone: no check-in is expected" : "",
      ]
        .filter(Boolean)
        .map((words) => ` · ${words}`),
      expected ? [" · expected ", el("time", { datetime: expected, title: clock(expected) }, away(expected))] : "",
    );
    this.checkins = (monitor.strip ?? []).slice(0, MOST);
    show(this.strip, strip(this.checkins));
  }

  table() {
    if (!this.checkins.length) return el("p.faint", {}, "None yet.");
    const row = ({ at, status, source, duration_ms, count }) =>
      el(
        "tr",
        {},
        el("td", { class: `mark-${status}` }, `${(MARKS[status] ?? MARKS.ok).sign} ${word(status, count)}`),
        el("td", {}, el("time", { datetime: at }, clock(at))),
        el("td.number", {}, took(duration_ms)),
        el("td.faint", {}, source),
      );
    const names = ["Status", "When", "Took", "From"].map((name) => el("th", { scope: "col" }, name));
    const rows = this.checkins.map(row);
    return el("div.scroll", { tabindex: "0" }, el("table", {}, el("thead", {}, el("tr", {}, names)), el("tbody", {}, rows)));
  }
}

/** The mark of each check-in status. Height and form differ, so colours are not needed. */
const MARKS = {
  ok: { sign: "✓", draw: (x) => [svg("rect", { x, y: 2, width: 8, height: 26, rx: 2 })] },
  error: {
    sign: "✕",
    draw: (x) => [svg("path", { d: `M${x} 12l8 10m0-10l-8 10`, class: "stroke" }), svg("rect", { x, y: 25, width: 8, height: 3 })],
  },
  missed: { sign: "○", draw: (x) => [svg("rect", { x: x + 0.75, y: 19.75, width: 6.5, height: 7.5, rx: 2, class: "hollow" })] },
  timeout: { sign: "⧖", draw: (x) => [svg("path", { d: `M${x} 8h8l-8 20h8z` })] },
  in_progress: { sign: "▶", draw: (x) => [svg("path", { d: `M${x} 12l8 8l-8 8z` })] },
};

/** Returns a status as text, with the number of check-ins if there are several. */
function word(status, count) {
  return `${String(status).replaceAll("_", " ")}${count > 1 ? ` (${count} times)` : ""}`;
}

/** Draws the newest check-ins, the newest at the right. */
function strip(checkins) {
  const marks = checkins.toReversed().map(({ at, status, duration_ms, count }, place) => {
    const words = `${word(status, count)}, ${clock(at)}${duration_ms ? `, ${took(duration_ms)}` : ""}`;
    return svg("g", { class: `mark-${status}` }, svg("title", {}, words), (MARKS[status] ?? MARKS.ok).draw(place * 11));
  });
  const counts = Object.keys(MARKS)
    .map((status) => [status, checkins.filter((checkin) => checkin.status === status).length])
    .filter(([, number]) => number);
  const words = counts.length
    ? `${many(checkins.length, "check-in")}: ${counts.map(([status, number]) => `${number} ${word(status)}`).join(", ")}`
    : "No check-in yet";
  const drawing = svg(
    "svg",
    { class: "strip", role: "img", "aria-label": words, viewBox: `0 0 ${MOST * 11 - 3} 30`, preserveAspectRatio: "xMinYMid meet" },
    marks,
  );
  return [drawing, el("p.faint.small", {}, words)];
}

function legend() {
  const item = ([status, { draw }]) =>
    el("li", {}, svg("svg", { viewBox: "0 0 8 30", class: `key mark-${status}`, "aria-hidden": "true" }, draw(0)), word(status));
  return el("ul.legend", { "aria-label": "What the strip means" }, Object.entries(MARKS).map(item));
}
