"use strict";
const assert = require("node:assert");

exports.least = (is, ought) => assert.ok(is >= ought, `${is} is less than ${ought}`);
