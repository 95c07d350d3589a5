// A results processor of Jest that reports each test by name to fledge.
"use strict";
const { Run } = require("./run.cjs");

const STATES = { passed: "passed", failed: "failed" };
let begun;

module.exports = (results) => {
  const run = begun ?? new Run();
  begun = undefined;
  for (const file of results.testResults) {
    for (const test of file.testResults) {
      const names = [file.testFilePath, ...test.ancestorTitles, test.title];
      if (test.invocations > 1) run.test(names, "retried");
      run.test(names, STATES[test.status] ?? "skipped");
    }
  }
  run.end();
  return results;
};

/** Begins the report before Jest loads a file with tests, because code that it loads may end the process. */
module.exports.begin = () => {
  begun = new Run();
};
