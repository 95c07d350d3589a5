// Runs what test/*.test.js export. What has a fake in a `__mocks__` folder, or is mapped to another file by package.json, is that, as
// larger runners have it.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const Module = require("node:module");

const root = path.dirname(__dirname);
const { jest = {} } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
const load = Module._load;
Module._load = (request, parent, isMain) => {
  const mapped = Object.entries(jest.moduleNameMapper ?? {}).find(([pattern]) => new RegExp(pattern).test(request));
  if (mapped) return load(path.join(root, mapped[1]), parent, isMain);
  const from = request.startsWith(".") ? path.dirname(parent.filename) : root;
  const place = path.resolve(from, request);
  const fake = path.join(path.dirname(place), "__mocks__", `${path.basename(place, ".js")}.js`);
  return load(fs.existsSync(fake) ? fake : request, parent, isMain);
};

let failed = 0;
for (const file of fs.readdirSync(path.join(root, "test")).filter((name) => name.endsWith(".test.js"))) {
  for (const [name, test] of Object.entries(require(path.join(root, "test", file)))) {
    try {
      test();
      console.log(`passed: ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`failed: ${name}: ${error.message}`);
    }
  }
}
process.exitCode = failed ? 1 : 0;
