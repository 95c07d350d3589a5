// Event streams that reconnect after the last received event, and show their state to the user.

import { harmless } from "./dom.js";

const LONGEST_PAUSE = 15_000;

/** The state of the connection that the page shows. */
export const connection = {
  live: () => state("live", "live"),
  lost: () => state("lost", "connection lost, trying again…"),
  out: () => state("out", "signed out: `fledge serve link` prints a sign-in link"),
};

function state(name, words) {
  const sign = document.getElementById("connection");
  if (sign.dataset.state === name) return;
  sign.dataset.state = name;
  sign.textContent = harmless(words);
}

/**
 * Listens at a path until it is closed. `after` is the start position. `heard(data, id)` gets every
 * event and `over(data)` the end of a finite stream. `back()` is called after a reconnect, and
 * `told(state)` when the state becomes `live` or `lost`.
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

  /** Checks the server and reconnects: browsers give up on some failures without a reason. */
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
    this.timer = setTimeout(() => this.retry(), LONGEST_PAUSE); // another tab may sign in
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.source?.close();
  }
}
