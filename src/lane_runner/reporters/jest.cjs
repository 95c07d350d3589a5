// A results processor of Jest that reports each test by name to fledge.
"use strict";
const { Run } = require("./run.cjs");

const STATES = { passed: "passed", failed: "failed" };

module.exports = (results) => {
  const run = new Run();
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
