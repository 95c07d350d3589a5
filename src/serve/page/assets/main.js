// The page: the view for the current address, and the parts common to all views.

import { post } from "./api.js";
import { begin } from "./begin.js";
import * as bell from "./bell.js";
import { el, show } from "./dom.js";
import { jobs } from "./jobs.js";
import { log } from "./log.js";
import { monitors } from "./monitors.js";
import { run } from "./run.js";
import { runs } from "./runs.js";
import { load } from "./project.js";
import { entitle, mark, waiting, watch } from "./waiting.js";

const main = document.getElementById("main");
let leave = null;

/** Shows the view for the address. Each view returns a function that ends it. */
function route(event) {
  const [where, given] = location.hash.replace(/^#\/?/, "").split("?");
  if (where === "main") return; // the skip link
  const [name, ...rest] = where.split("/");
  const part = decode(rest.join("/"));
  leave?.();
  leave = null;
  for (const link of document.querySelectorAll(".top nav a")) {
    if (link.hash === `#/${name || "runs"}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  window.scrollTo(0, 0);
  leave = open(name, part, new URLSearchParams(given ?? "")) ?? null;
  if (event) (main.querySelector("h1") ?? main).focus({ preventScroll: true });
}

function open(name, part, given) {
  if (name === "" || (name === "runs" && !part)) return runs(main, given);
  const [, id, file] = /^([^/]+)\/(logs\/.+)$/.exec(part) ?? [];
  if (name === "runs") return file ? log(main, id, file, given) : run(main, part);
  if (name === "waiting") return waiting(main);
  if (name === "jobs") return jobs(main);
  if (name === "monitors") return monitors(main, part);
  if (name === "new") return begin(main, given);
  entitle("Not found");
  return show(main, el("h1", { tabindex: "-1" }, "Page not found"), el("p", {}, el("a", { href: "#/runs" }, "All runs")));
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
document.getElementById("leave").addEventListener("click", async () => {
  await post("/leave").catch(() => {});
  location.assign("/"); // shows how to sign in again
});
window.addEventListener("hashchange", route);

// Print everything: open what is folded, also inside of it, and fold it again afterwards.
let unfolded = [];
window.addEventListener("beforeprint", () => {
  unfolded = [];
  for (let parts; (parts = [...document.querySelectorAll("main details:not([open])")]).length > 0; unfolded.push(...parts)) {
    for (const part of parts) {
      part.open = true;
      part.dispatchEvent(new Event("toggle")); // makes the content now: the event of `open` comes after the print
    }
  }
});
window.addEventListener("afterprint", () => unfolded.forEach((part) => (part.open = false)));
watch();
bell.begin();
load(mark).finally(() => route());
