"use strict";

exports.ratio = (a, b) => b / a;
