"use strict";
const assert = require("node:assert");

exports.same = (is, ought) => assert.strictEqual(is, ought);
