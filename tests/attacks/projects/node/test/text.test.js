"use strict";
const test = require("node:test");
const assert = require("node:assert");
const { title } = require("../src/text.js");

test("titles", () => {
  assert.equal(title("a word"), "A word");
});
