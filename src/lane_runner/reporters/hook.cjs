// Node loads this file before a program. It adds a reporter to a test runner, and changes nothing else.
"use strict";
const fs = require("fs");
const path = require("path");

/** Removes the option that loads this file from the variables of this process. */
function forget() {
  const own = [`--require "${__filename}"`, `--require ${__filename}`];
  const rest = own.reduce((text, option) => text.replace(option, ""), process.env.NODE_OPTIONS || "").trim();
  if (rest) process.env.NODE_OPTIONS = rest;
  else delete process.env.NODE_OPTIONS;
}

/** Returns the values of an option in these arguments. */
function values(args, option) {
  const found = [];
  args.forEach((arg, at) => {
    if (arg.startsWith(`${option}=`)) found.push(arg.slice(option.length + 1));
    else if (arg === option) found.push(args[at + 1]);
  });
  return found;
}

/** Returns whether a configuration file, or an argument, has a word. */
function isConfigured(word, files) {
  const named = [...values(process.argv, "--config"), ...values(process.argv, "-c")];
  const all = [...fs.readdirSync(".").filter((name) => files.test(name)), ...named];
  const has = (name) => fs.readFileSync(name, "utf8").includes(word);
  return process.argv.some((arg) => arg.includes(word)) || all.some(has);
}

/** Starts `node --test` once more, with a further reporter, and ends as it ends. */
function startAgain() {
  forget();
  const options = process.execArgv;
  const given = [...(process.env.NODE_OPTIONS || "").split(" "), ...options];
  const reporters = values(given, "--test-reporter");
  const destinations = values(given, "--test-reporter-destination");
  const more = ["--test-reporter", path.join(__dirname, "node_reporter.mjs"), "--test-reporter-destination", "stderr"];
  if (reporters.length === 0 && destinations.length === 0) {
    const usual = process.stdout.isTTY || VERSION >= 23 ? "spec" : "tap";
    more.push("--test-reporter", usual, "--test-reporter-destination", "stdout");
  } else if (reporters.length === 1 && destinations.length === 0) {
    more.unshift("--test-reporter-destination", "stdout");
  } else if (reporters.length !== destinations.length) {
    return;
  }
  const { spawnSync } = require("child_process");
  const ended = spawnSync(process.execPath, [...options, ...more, ...process.argv.slice(1)], { stdio: "inherit" });
  if (ended.error) throw ended.error;
  if (ended.signal) process.kill(process.pid, ended.signal);
  process.exit(ended.status);
}

// Options with which Jest runs no tests.
const WITHOUT_TESTS = ["--clearcache", "--help", "-h", "--init", "--listtests", "--showconfig", "--version", "-v"];

function addToJest() {
  if (isConfigured("testResultsProcessor", /^(package\.json|jest\.config\.\w+)$/)) return;
  forget();
  process.argv.push(`--testResultsProcessor=${path.join(__dirname, "jest.cjs")}`);
  const option = (arg) => `${arg.startsWith("--") ? "--" : ""}${arg.replaceAll("-", "")}`.toLowerCase();
  if (!process.argv.some((arg) => WITHOUT_TESTS.includes(arg.startsWith("--") ? option(arg) : arg))) require("./jest.cjs").begin();
}

function addToVitest() {
  const hasOwn = isConfigured("reporter", /^(vitest|vite)\.(config|workspace)\.\w+$/);
  if (hasOwn || ["bench", "init", "list"].includes(process.argv[2])) return;
  forget();
  const usual = process.env.GITHUB_ACTIONS === "true" ? ["default", "github-actions"] : ["default"];
  const all = [...usual, path.join(__dirname, "vitest.mjs")];
  process.argv.push(...all.map((reporter) => `--reporter=${reporter}`));
}

// Options with which Mocha runs no tests, or runs them in other processes.
const WITHOUT_RUNNER = /^(-V|-h|-p|init|--(version|help|parallel|list-.*))$/;

function addToMocha() {
  const isInParallel = isConfigured("parallel", /^(package\.json|\.mocharc\..*)$/);
  require("./mocha.cjs")(forget, !isInParallel && !process.argv.some((arg) => WITHOUT_RUNNER.test(arg)));
}

const VERSION = Number(process.versions.node.split(".")[0]);
// The end of a runner's path, and the function that adds the reporter.
const RUNNERS = [
  [/[/\\](\.bin[/\\]jest|jest[/\\]bin[/\\]jest\.js|jest-cli[/\\]bin[/\\]jest\.js)$/, addToJest],
  [/[/\\](\.bin[/\\]vitest|vitest[/\\]vitest\.mjs)$/, addToVitest],
  [/[/\\](\.bin[/\\]_?mocha|mocha[/\\]bin[/\\]_?mocha(\.js)?|mocha[/\\]lib[/\\]cli[/\\]cli\.js)$/, addToMocha],
];

function addReporter() {
  if (VERSION < 18 || process.env.NODE_TEST_CONTEXT || !require("worker_threads").isMainThread) return;
  const isTest = process.execArgv.includes("--test") && !process.execArgv.includes("--watch");
  const runner = RUNNERS.find(([file]) => file.test(process.argv[1] || ""));
  if (isTest && VERSION >= 20) startAgain();
  else if (runner) runner[1]();
}

try {
  addReporter();
} catch (error) {
  // The runner works without a reporter.
}
