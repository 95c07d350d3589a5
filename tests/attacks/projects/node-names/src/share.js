"use strict";

exports.share = (part, whole) => whole / part;
