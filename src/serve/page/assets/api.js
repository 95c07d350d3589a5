// Requests to the server. An error contains the text of the problem document (RFC 9457).

import { connection } from "./stream.js";

/** An error of the server. `status` is 0 if the server could not be reached. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the server answered ${status}`);
    this.status = status;
    this.errors = Array.isArray(problem.errors) ? problem.errors : [];
  }
}

/** Returns the JSON at a path; null for an answer without a body. */
export async function get(path, signal) {
  return (await ask(path, { signal })).json();
}

/** Returns the text at a path. */
export async function text(path) {
  return (await ask(path, {})).text();
}

/** Posts JSON. Returns the JSON of the answer, or null. */
export async function post(path, body = {}) {
  const answer = await ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const said = await answer.text();
  return said ? JSON.parse(said) : null;
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    connection.lost();
    throw new Refusal(0, { detail: "The server cannot be reached. Is it still running?" });
  }
  if (answer.ok) return answer;
  if (answer.status === 401) connection.out();
  throw new Refusal(answer.status, await answer.json().catch(() => ({})));
}

/** Joins parts to an API path, and escapes each part. */
export function path(...parts) {
  return `/v1/${parts.map(encodeURIComponent).join("/")}`;
}

/** Returns a path with a query of all values that are set. */
export function query(base, values) {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `${base}?${new URLSearchParams(given)}` : base;
}
