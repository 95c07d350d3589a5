// News from the server. Browsers limit all tabs together to six connections per server, so one tab
// listens and forwards the news to the others.

import { connection, Stream } from "./stream.js";

const listeners = new Set();
const others = "BroadcastChannel" in globalThis ? new BroadcastChannel("fledge-news") : null;

/** Calls `heard` with each news item `{type, data}`. Returns a function that unsubscribes. */
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

/** Begins to listen, at once or when the listening tab is closed. */
export function begin() {
  if (others) others.onmessage = (event) => tell(event.data);
  const told = (state) => others?.postMessage({ type: "connection", data: state });
  const open = () => new Stream("/v1/events", { heard: everyone, back: () => everyone({ type: "reset" }), told });
  if (!navigator.locks || !others) return void open(); // unavailable over plain HTTP to another machine
  const mine = navigator.locks.request("fledge-news", () => new Promise(() => open()));
  mine.catch(() => open());
  // A tab that does not listen notices a lost connection by a failing request.
  fetch("/healthz", { cache: "no-store" }).then(
    (answer) => answer.ok && connection.live(),
    () => connection.lost(),
  );
}
