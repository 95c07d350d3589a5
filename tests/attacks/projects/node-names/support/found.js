"use strict";
const fs = require("node:fs");
const path = require("node:path");

const root = path.dirname(__dirname);
const found = (folder) => fs.readdirSync(path.join(root, folder)).map((name) => path.join(root, folder, name));
exports.tests = () => ["checks", "unit"].flatMap(found).filter((file) => file.endsWith("-test.js"));
