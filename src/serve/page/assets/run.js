// One run: what it is, what it asks, its story as it happens, what it changed.

import { get, path, post, text } from "./api.js";
import { course, spending } from "./chart.js";
import { files } from "./diff.js";
import { announce, el, folded, say, show, throttled } from "./dom.js";
import { listen } from "./bell.js";
import { Story } from "./fold.js";
import { Questions } from "./questions.js";
import { StoryView } from "./story.js";
import { Stream } from "./stream.js";
import { entitle } from "./waiting.js";
import { clock, money, size, standing, took, used } from "./words.js";

/** The page of a run. */
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
  // No news say that a machine has fallen silent.
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
    // One that is over is told by its journal; one that is not, by its events from the first one on.
    const isOver = detail.state === "ended";
    for (const scene of detail.story ?? []) if (isOver || scene.type === "began") this.fold.scene(scene);
    this.fold.said = null;
    this.view = new StoryView(this.fold);
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
    this.follow = el("input", { type: "checkbox", checked: true, onchange: () => this.view.follow(this.follow.checked) });
    this.following = el("label.follow", {}, this.follow, " Follow");
    this.cancel = el("button.danger", { type: "button", onclick: () => this.askToCancel() }, "Cancel the run…");
    const task = this.fold.task?.prompt;
    show(
      this.main,
      el("p.way", {}, el("a", { href: "#/runs" }, "← Runs")),
      this.title,
      el("div.line", {}, this.state, this.following, this.cancel),
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

  /** What the server says of the run as a whole. */
  put(detail) {
    this.run = detail;
    say(this.title, detail.title || detail.id);
    entitle(detail.title || "Run");
    const goesOn = detail.state === "running" || detail.state === "queued";
    this.cancel.hidden = !goesOn;
    this.following.hidden = !goesOn;
    this.questions.put(detail.confirmations ?? []);
    const { outcome } = detail;
    const lasted = outcome ? Date.parse(outcome.ended_at) - Date.parse(detail.started_at) : null;
    const facts = [
      ["Began", clock(detail.started_at)],
      ["Took", lasted === null ? "" : took(Math.max(lasted, 0))],
      ["Cost", money(outcome?.cost_micros)],
      ["Tokens", outcome ? used(outcome, detail.result?.usage.total.estimated_tokens) : ""],
      ["Model", (detail.models ?? []).join(", ")],
      ["Task", detail.source === "-" ? "" : detail.source],
      ["Machine", detail.machine],
      ["Run", detail.id],
    ];
    show(
      this.facts,
      facts
        .filter(([, value]) => value)
        .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", { class: name === "Run" ? "mono" : null }, value))),
    );
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
    const now = this.run.outcome ? Date.parse(this.run.outcome.ended_at) - this.fold.began : Date.now() - this.fold.began;
    const spent = this.run.state === "ended" ? (this.fold.spending.at(-1)?.at ?? 0) : now;
    show(this.drawings, spending(this.fold.spending, spent), course(this.run.course ?? []));
  }

  /** What there is to take away, and the difference in colours. */
  changes(artifacts) {
    if (artifacts.length === this.shown) return;
    this.shown = artifacts.length;
    const place = (name) => path("runs", this.id, "artifacts", ...name.split("/")).replaceAll("%2F", "/");
    const patch = artifacts.find(({ name }) => name === "diff.patch");
    const load = () => {
      const box = el("div", {}, el("p.faint", {}, "Loading…"));
      text(place("diff.patch")).then(
        (said) => show(box, said.trim() ? files(said) : el("p.faint", {}, "Nothing was changed.")),
        (error) => show(box, el("p.bad", {}, error.message)),
      );
      return box;
    };
    const links = artifacts.map(({ name, bytes }) =>
      el("li", {}, el("a", { href: place(name), download: "" }, name), el("span.faint", {}, ` ${size(bytes)}`)),
    );
    show(
      this.files,
      patch ? folded("What was changed", load) : null,
      links.length ? folded(`Files (${links.length})`, () => el("ul", {}, links)) : null,
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
    if (record.type === "usage") this.redraw();
    if (record.type === "confirmation" || this.fold.misses) this.refresh();
  }

  /** Asks anew for the whole, and fills in what was told while nobody listened. */
  async again() {
    const detail = await get(path("runs", this.id)).catch(() => null);
    if (!detail || this.closed || !this.run) return;
    this.fold.began = Date.parse(detail.started_at); // one that had to wait begins anew
    this.fold.refill(detail.story ?? []);
    this.view.soon();
    this.put(detail);
    if (detail.state === "ended") this.view.follow(false);
  }

  askToCancel() {
    const fault = el("p.bad", { role: "alert", hidden: true });
    const dialog = el(
      "dialog",
      { "aria-label": "Cancel the run", onclose: () => dialog.remove() },
      el("h2", {}, "Cancel this run?"),
      el("p", {}, "What it has done so far is kept, and it ends as cancelled."),
      fault,
      el(
        "div.buttons",
        {},
        el("button.danger", { type: "button", onclick: () => this.doCancel(dialog, fault) }, "Cancel the run"),
        el("button", { type: "button", onclick: () => dialog.close() }, "Let it go on"),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  }

  async doCancel(dialog, fault) {
    try {
      await post(path("runs", this.id, "cancel"));
      announce("The run is asked to stop");
      dialog.close();
      this.refresh();
    } catch (error) {
      show(fault, error.message);
      fault.hidden = false;
    }
  }

  /** Nobody looks: the connection is for others. */
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
