// A reporter of `node --test` that reports each test by name to fledge, and prints nothing.
import { createRequire } from "node:module";

const { Run } = createRequire(import.meta.url)("./run.cjs");

export default async function* report(source) {
  const run = new Run();
  // The open suites of each file, by their depths.
  const open = new Map();
  for await (const { type, data } of source) {
    if (type === "test:start") {
      const names = (open.get(data.file) ?? []).slice(0, data.nesting);
      names[data.nesting] = data.name;
      open.set(data.file, names);
    } else if ((type === "test:pass" || type === "test:fail") && data.details?.type !== "suite") {
      const isLeftOut = data.skip !== undefined || data.todo !== undefined;
      const state = isLeftOut ? "skipped" : type === "test:pass" ? "passed" : "failed";
      run.test([data.file, ...(open.get(data.file) ?? []).slice(0, data.nesting), data.name], state);
    }
  }
  run.end();
}
