// One run: its facts, its questions, its live story, and its changes.

import { Actions } from "./actions.js";
import { get, path, query, text } from "./api.js";
import { listen } from "./bell.js";
import { changes } from "./changes.js";
import { course } from "./chart.js";
import { el, folded, say, show, throttled } from "./dom.js";
import { Story } from "./fold.js";
import { artifact, place } from "./log.js";
import { inside } from "./project.js";
import { Questions } from "./questions.js";
import { starter } from "./row.js";
import { StoryView } from "./story.js";
import { Stream } from "./stream.js";
import { timeline } from "./timeline.js";
import { entitle } from "./waiting.js";
import { clock, money, size, standing, took, used } from "./words.js";

/** Shows the page of a run. */
export function run(main, id) {
  entitle("Run");
  show(main, el("p.faint", {}, "Loading…"));
  const page = new Page(main, id);
  page.load();
  const seen = () => (document.hidden ? page.rest() : page.wake());
  document.addEventListener("visibilitychange", seen);
  const stop = listen((news) => {
    if (news.type === "reset" || news.data?.id === page.id || news.data?.run === page.id) page.refresh();
  });
  // The server sends no news when another machine falls silent, so its runs are polled.
  const clockwork = setInterval(() => page.run?.machine && page.run.state !== "ended" && page.refresh(), 30_000);
  return () => {
    page.close();
    stop();
    clearInterval(clockwork);
    document.removeEventListener("visibilitychange", seen);
  };
}

class Page {
  constructor(main, id) {
    Object.assign(this, { main, id, run: null, stream: null, closed: false });
    this.refresh = throttled(() => this.again(), 500);
    this.redraw = throttled(() => this.figures(), 1000);
  }

  async load() {
    let detail;
    try {
      detail = await get(path("runs", this.id));
    } catch (error) {
      const words = error.status === 404 ? "There is no such run." : error.message;
      return show(
        this.main,
        el("h1", { tabindex: "-1" }, "Run"),
        el("p.bad", { role: "alert" }, words),
        el("p", {}, el("a", { href: "#/runs" }, "All runs")),
      );
    }
    if (this.closed) return;
    this.id = detail.id;
    this.fold = new Story(detail.started_at);
    this.fold.doing = detail.doing ?? null;
    // An ended run is shown from its journal, another run from its events since the first.
    const isOver = detail.state === "ended";
    for (const scene of detail.story ?? []) if (isOver || scene.type === "began") this.fold.scene(scene);
    this.fold.said = null;
    this.view = new StoryView(this.fold, this.id);
    this.build(detail);
    this.put(detail);
    if (!isOver) this.listen(null);
  }

  build(detail) {
    this.title = el("h1", { tabindex: "-1" });
    this.state = el("p.state");
    this.facts = el("dl.facts");
    this.drawings = el("div.drawings");
    this.files = el("div");
    this.questions = new Questions(this.id, { changed: this.refresh });
    this.actions = new Actions(this.refresh);
    this.follow = el("input", { type: "checkbox", checked: true, onchange: () => this.view.follow(this.follow.checked) });
    this.following = el("label.follow", {}, this.follow, " Follow");
    const task = this.fold.task?.prompt;
    show(
      this.main,
      el("p.way", {}, el("a", { href: "#/runs" }, "← Runs")),
      this.title,
      el("div.line", {}, this.state, this.following),
      this.actions.element,
      this.questions.element,
      this.facts,
      this.drawings,
      task ? folded("The task", () => el("pre", { tabindex: "0" }, task)) : null,
      this.files,
      el("h2", {}, "Story"),
      this.view.element,
    );
    this.main.querySelector("h1").focus({ preventScroll: true });
    this.view.follow(detail.state !== "ended");
  }

  /** Shows the run's data from the server. */
  put(detail) {
    this.run = detail;
    say(this.title, detail.title || detail.id);
    entitle(detail.title || "Run");
    this.following.hidden = detail.state !== "running" && detail.state !== "queued";
    this.actions.put(detail);
    this.questions.put(detail.confirmations ?? []);
    show(this.facts, facts(detail));
    this.stand();
    this.figures();
    this.changes(detail.artifacts ?? []);
  }

  stand() {
    const { shape, word, tone } = standing(this.run);
    const doing = this.run.state === "running" ? (this.fold.doing ?? this.run.doing) : this.run.outcome?.summary;
    show(this.state, el("strong", { class: tone }, `${shape} ${word}`), doing ? ` – ${doing}` : "");
  }

  figures() {
    const { outcome } = this.run;
    const lasted = (outcome ? Date.parse(outcome.ended_at) : Date.now()) - this.fold.began;
    if (this.drawings.contains(document.activeElement)) return; // the arrow keys move between bars
    show(this.drawings, timeline(this.fold, lasted, (block) => this.view.lead(block)), course(this.run.course ?? []));
  }

  /** Shows the changes and the downloads. */
  changes(artifacts) {
    if (artifacts.length === this.shown) return;
    this.shown = artifacts.length;
    this.view.logs(artifacts.map(({ name }) => name).filter((name) => name.startsWith("logs/")));
    const patch = artifacts.find(({ name }) => name === "diff.patch");
    const load = () => {
      const box = el("div", {}, el("p.faint", {}, "Loading…"));
      text(artifact(this.id, "diff.patch")).then(
        (said) => show(box, changes(said)),
        (error) => show(box, el("p.bad", {}, error.message)),
      );
      return box;
    };
    const link = ({ name, bytes }) => {
      const [file, length] = [el("a", { href: artifact(this.id, name), download: "" }, name), el("span.faint", {}, ` ${size(bytes)}`)];
      return el("li", {}, file, length, name.startsWith("logs/") ? [" · ", el("a", { href: place(this.id, name) }, "read")] : null);
    };
    show(
      this.files,
      patch ? folded(el("h2", {}, "Changes"), load, { open: true, class: "changed" }) : null,
      artifacts.length ? folded(`Files (${artifacts.length})`, () => el("ul", {}, artifacts.map(link))) : null,
    );
  }

  listen(after) {
    this.stream?.close();
    this.stream = new Stream(path("runs", this.id, "events"), {
      after,
      heard: (record) => this.heard(record),
      over: () => this.again(),
      back: () => this.again(),
    });
  }

  heard(record) {
    this.fold.event(record);
    this.view.soon();
    this.stand();
    if (["usage", "verify_result", "phase_changed"].includes(record.type)) this.redraw();
    if (["confirmation", "verify_result"].includes(record.type) || this.fold.misses) this.refresh();
  }

  /** Fetches the run again and fills in missed events. */
  async again() {
    const detail = await get(path("runs", this.id)).catch(() => null);
    if (!detail || this.closed || !this.run) return;
    if (this.run.state === "ended" && detail.state !== "ended") return this.resumed(detail);
    this.fold.began = Date.parse(detail.started_at); // a run that waited has a new start
    this.fold.refill(detail.story ?? []);
    this.view.soon();
    this.put(detail);
    if (detail.state === "ended") this.view.follow(false);
  }

  /** Shows a resumed run from its start, with its events. */
  resumed(detail) {
    this.stream?.close();
    this.run = detail;
    this.shown = undefined;
    return this.load();
  }

  /** Closes the stream while the page is hidden, to free its connection. */
  rest() {
    if (!this.stream || this.stream.closed) return;
    this.last = this.stream.last;
    this.stream.close();
    this.rests = true;
  }

  wake() {
    if (!this.rests) return;
    this.rests = false;
    this.listen(this.last);
    this.again();
  }

  close() {
    this.closed = true;
    this.stream?.close();
    document.querySelector("dialog")?.close();
  }
}

/** Describes the origin of a run, with a link to it. */
function origin(parent, by) {
  if (parent) return el("a", { href: `#/runs/${parent}` }, `run ${parent.slice(0, 8)}`);
  const place = by?.kind === "batch" ? query("#/runs", { q: by.name }) : by?.kind === "schedule" ? "#/jobs" : null;
  return place ? el("a", { href: place }, starter(by)) : starter(by);
}

/** Returns the facts of a run as terms and descriptions. */
function facts(detail) {
  const { outcome, parent, started_by: by } = detail;
  const lasted = outcome ? Date.parse(outcome.ended_at) - Date.parse(detail.started_at) : null;
  const all = [
    ["Began", clock(detail.started_at)],
    ["Took", lasted === null ? "" : took(Math.max(lasted, 0))],
    ["Cost", money(outcome?.cost_micros)],
    ["Tokens", outcome ? used(outcome, detail.result?.usage.total.estimated_tokens) : ""],
    ["Model", (detail.models ?? []).join(", ")],
    ["Task", detail.source === "-" ? "" : inside(detail.source)],
    ["Branch", detail.branch],
    ["Attempts", outcome?.attempts || ""],
    ["Started by", origin(parent, by)],
    ["Machine", detail.machine],
    ["Run", el("span.mono", {}, detail.id)],
  ];
  return all.filter(([, value]) => value).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
}
