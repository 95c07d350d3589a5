// The served project: its name in the header and in every title.

import { get } from "./api.js";
import { say } from "./dom.js";

/** The data of the project; empty until it is loaded. */
export const project = { name: "", folder: "", fledge: "" };

/** Loads the project, shows its name, and calls `named`. */
export async function load(named) {
  Object.assign(project, await get("/v1/project").catch(() => ({})));
  const place = document.getElementById("project");
  say(place, project.name);
  place.title = project.folder;
  place.hidden = !project.name;
  named();
}

/** Returns a path relative to the project's folder. */
export function inside(path) {
  const folder = `${project.folder}/`;
  return project.folder && path?.startsWith(folder) ? path.slice(folder.length) : (path ?? "");
}
