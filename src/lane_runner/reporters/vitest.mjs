// A reporter of Vitest that reports each test by name to fledge, and prints nothing.
import { createRequire } from "node:module";

const { Run } = createRequire(import.meta.url)("./run.cjs");
const STATES = { passed: "passed", failed: "failed", pass: "passed", fail: "failed" };

/** Reports the tests below a task of Vitest before 3. */
function reportTasks(run, tasks, names) {
  for (const task of tasks) {
    const all = [...names, task.name];
    if (task.tasks) reportTasks(run, task.tasks, all);
    else {
      if (task.result?.retryCount > 0) run.test(all, "retried");
      run.test(all, STATES[task.result?.state] ?? "skipped");
    }
  }
}

export default class {
  #run = new Run();

  /** Vitest 3 and later. */
  onTestRunEnd(modules) {
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const state = test.options.fails ? "expected_to_fail" : (STATES[test.result().state] ?? "skipped");
        if (test.diagnostic?.()?.retryCount > 0) this.#run.test([module.moduleId, test.fullName], "retried");
        this.#run.test([module.moduleId, test.fullName], state);
      }
    }
    this.#end();
  }

  /** Vitest before 3. */
  onFinished(files) {
    for (const file of this.#run ? files : []) reportTasks(this.#run, file.tasks, [file.filepath]);
    this.#end();
  }

  #end() {
    this.#run?.end();
    this.#run = undefined;
  }
}
