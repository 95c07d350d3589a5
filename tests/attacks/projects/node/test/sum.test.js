"use strict";
const test = require("node:test");
const assert = require("node:assert");
const { sum } = require("../src/sum.js");

test("adds", () => {
  assert.equal(sum(2, 3), 5);
});
