// The news of the server. Browsers allow a server six connections for all their tabs, so only one tab listens and tells the others.

import { connection, Stream } from "./stream.js";

const listeners = new Set();
const others = "BroadcastChannel" in globalThis ? new BroadcastChannel("fledge-news") : null;

/** Calls a function with all news, `{type, data}`, until the function that this gives is called. */
export function listen(heard) {
  listeners.add(heard);
  return () => listeners.delete(heard);
}

function tell(news) {
  if (news.type === "connection") return connection[news.data]?.();
  for (const heard of listeners) heard(news);
}

function everyone(news) {
  tell(news);
  others?.postMessage(news);
}

/** Begins: at once, or when the tab that listens is closed. */
export function begin() {
  if (others) others.onmessage = (event) => tell(event.data);
  const told = (state) => others?.postMessage({ type: "connection", data: state });
  const open = () => new Stream("/v1/events", { heard: everyone, back: () => everyone({ type: "reset" }), told });
  if (!navigator.locks || !others) return void open(); // not over plain HTTP to another machine
  const mine = navigator.locks.request("fledge-news", () => new Promise(() => open()));
  mine.catch(() => open());
  // Whoever does not listen itself hears of a lost connection by what it asks for.
  fetch("/healthz", { cache: "no-store" }).then(
    (answer) => answer.ok && connection.live(),
    () => connection.lost(),
  );
}
