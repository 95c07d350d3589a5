"use strict";

exports.sum = (a, b) => a - b;
