// A run of a test runner that reports to fledge. Its last record proves that the run itself ended: the
// record has a secret of this process, and a digest of all records with that secret.
"use strict";
const { createHash, randomBytes } = require("node:crypto");
const { closeSync, constants, openSync, writeSync } = require("node:fs");
const path = require("node:path");

const CHANNEL = path.join(__dirname, "channel");
// A record with a name of this length is written in one piece (`PIPE_BUF`).
const LONGEST = 700;
const sha256 = (text) => createHash("sha256").update(text).digest("hex");
const folder = process.cwd();
const relative = (text) => (path.isAbsolute(text) ? path.relative(folder, text) : text);

class Run {
  #name = randomBytes(8).toString("hex");
  #secret = randomBytes(16).toString("hex");
  #chain = createHash("sha256").update(this.#secret);

  constructor() {
    this.#send({ begin: sha256(this.#secret) });
  }

  /** Reports a test by the names of its file, its suites and itself. */
  test(names, state) {
    const name = Buffer.from(names.map((part) => relative(String(part ?? ""))).join(" > ")).toString();
    this.#send({ test: name.length > LONGEST ? name.slice(0, LONGEST) + sha256(name) : name, state });
  }

  end() {
    this.#send({ end: this.#secret, digest: this.#chain.digest("hex") });
  }

  /** Writes a record in one piece. */
  #send(record) {
    const line = `${JSON.stringify({ ...record, run: this.#name })}\n`;
    if (!record.end) this.#chain.update(line);
    try {
      const file = openSync(CHANNEL, constants.O_WRONLY);
      try {
        writeSync(file, line);
      } finally {
        closeSync(file);
      }
    } catch {}
  }
}

module.exports = { Run };
