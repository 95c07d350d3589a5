"use strict";

exports.title = (text) => text.charAt(0).toUpperCase() + text.slice(1);
