// A results processor of Jest that reports each test by name to fledge.
"use strict";
const { Run } = require("./run.cjs");

const STATES = { passed: "passed", failed: "failed" };

module.exports = (results) => {
  const run = new Run();
  for (const file of results.testResults) {
    for (const test of file.testResults) {
      run.test([file.testFilePath, ...test.ancestorTitles, test.title], STATES[test.status] ?? "skipped");
    }
  }
  run.end();
  return results;
};
