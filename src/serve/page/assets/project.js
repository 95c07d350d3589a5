// The project that is served: its name in the header and in every title.

import { get } from "./api.js";
import { say } from "./dom.js";

/** What is known of it: nothing until it was asked for. */
export const project = { name: "", folder: "", fledge: "" };

/** Asks for it, shows its name, and calls `named`. */
export async function load(named) {
  Object.assign(project, await get("/v1/project").catch(() => ({})));
  const place = document.getElementById("project");
  say(place, project.name);
  place.title = project.folder;
  place.hidden = !project.name;
  named();
}

/** A path as it is from the folder of the project. */
export function inside(path) {
  const folder = `${project.folder}/`;
  return project.folder && path?.startsWith(folder) ? path.slice(folder.length) : (path ?? "");
}
