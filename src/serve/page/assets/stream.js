// Streams of events that go on: where one breaks off it is taken up behind the last event that came, and people see that it is tried.

import { harmless } from "./dom.js";

const LONGEST_PAUSE = 15_000;

/** What the page says of its connection. */
export const connection = {
  live: () => state("live", "live"),
  lost: () => state("lost", "connection lost, trying again…"),
  out: () => state("out", "signed out: `fledge serve link` prints a way in"),
};

function state(name, words) {
  const sign = document.getElementById("connection");
  if (sign.dataset.state === name) return;
  sign.dataset.state = name;
  sign.textContent = harmless(words);
}

/**
 * Listens at a path until it is closed. `after` is where to begin; `heard(data, id)` gets every event, `over(data)` the end of a stream
 * that has one, `back()` is called when it goes on after a break, `told(state)` when it is `live` or `lost`.
 */
export class Stream {
  constructor(path, { after = null, heard, over, back, told }) {
    Object.assign(this, {
      path,
      last: after,
      heard,
      over,
      back,
      told,
      pause: 1000,
      source: null,
      timer: null,
      broken: false,
      closed: false,
    });
    this.open();
  }

  open() {
    if (this.closed) return;
    const from = this.last === null ? this.path : `${this.path}?after=${encodeURIComponent(this.last)}`;
    const source = new EventSource(from);
    this.source = source;
    source.onopen = () => this.opened();
    source.onmessage = (event) => {
      if (event.lastEventId) this.last = event.lastEventId;
      this.heard(JSON.parse(event.data), event.lastEventId);
    };
    source.addEventListener("end", (event) => {
      this.close();
      this.over?.(JSON.parse(event.data || "null"));
    });
    source.onerror = () => this.failed();
  }

  opened() {
    connection.live();
    this.told?.("live");
    this.pause = 1000;
    if (this.broken) this.back?.();
    this.broken = false;
  }

  /** Browsers give up on some failures for good, and do not say which: it is asked what is the matter, and tried anew. */
  failed() {
    if (this.closed) return;
    this.broken = true;
    connection.lost();
    this.told?.("lost");
    this.source.close();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.retry(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  async retry() {
    const probe = await fetch("/healthz", { cache: "no-store" }).catch(() => null);
    if (this.closed) return;
    if (probe?.status !== 401) return this.open();
    connection.out();
    this.timer = setTimeout(() => this.retry(), LONGEST_PAUSE); // another tab may find the way in
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.source?.close();
  }
}
