"use strict";
const { near } = require("near");
const { ratio } = require("../src/ratio.js");

exports["the same is one"] = () => near(ratio(2, 2), 1);
exports["a third"] = () => near(ratio(1, 3) * 3, 1);
