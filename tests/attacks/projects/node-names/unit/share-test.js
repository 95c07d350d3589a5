"use strict";
const test = require("node:test");
const { near } = require("near");
const { same } = require("shares/testing");
const { least } = require("#least");
const { share } = require("../src/share");
const shares = require("./shares.json");

test("the shares", () => {
  for (const [part, whole, ought] of shares) near(share(part, whole), ought);
});
test("a share of itself", () => same(share(7, 7), 1));
test("no share is negative", () => least(share(1, 1), 0));
