// Adds a listener to Mocha's runner that reports each test by name to fledge.
"use strict";
const Module = require("node:module");
const { Run } = require("./run.cjs");

/** Returns the titles of a test and its suites. Mocha before 4 has no `titlePath`. */
const titles = (test) => [...(test.parent ? titles(test.parent) : []), test.title].filter(Boolean);
const names = (test) => [test.file, ...(test.titlePath ? test.titlePath() : titles(test))];
const STATES = { pass: "passed", fail: "failed", retry: "retried", pending: "skipped" };

/** Makes the next run of a runner report its tests. `start` is called before it. */
function listen(Runner, start, begun) {
  const { run } = Runner.prototype;
  Runner.prototype.run = function (...args) {
    Runner.prototype.run = run;
    start();
    const report = begun ?? new Run();
    for (const [event, state] of Object.entries(STATES)) {
      this.on(event, (test) => {
        try {
          report.test(names(test), state);
        } catch {
          // Mocha before 4 ends without an error if a listener throws.
        }
      });
    }
    this.once("end", () => report.end());
    return run.apply(this, args);
  };
}

/**
 * Waits for the module with the runner. The report begins with it if `runsTests` is true: before files
 * with tests are loaded, because code that they load may end the process.
 */
module.exports = (start, runsTests) => {
  const load = Module._load;
  Module._load = function (...args) {
    const loaded = load.apply(this, args);
    // The module of Mocha before 12 is the class itself.
    const Runner = [loaded, loaded?.Runner].find((it) => it?.name === "Runner" && it.prototype?.runTests);
    if (Runner && Module._load !== load) {
      Module._load = load;
      listen(Runner, start, runsTests ? new Run() : undefined);
    }
    return loaded;
  };
};
