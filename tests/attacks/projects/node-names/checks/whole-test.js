"use strict";
const test = require("node:test");
const { same } = require("shares/testing");
const { share } = require("../src/share");

test("the whole", () => same(share(2, 2), 1));
