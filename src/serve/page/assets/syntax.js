// Simple syntax colours for diffs, line by line: comments, strings, numbers and keywords.

import { el } from "./dom.js";

const LONGEST = 1000;

const C = `abstract as async await bool break byte case catch char class const continue crate default defer delete do double dyn else enum export
  extends extern false final finally float fn for foreach func function go goto if impl implements import in instanceof int interface
  internal is let lock long loop match mod move mut namespace new nil null operator out override package private protected pub public
  readonly ref return self Self sealed short signed sizeof static string struct super switch template this throw throws trait true try
  type typedef typeof union unsafe unsigned use using val var virtual void volatile when where while yield`;
const SCRIPT = `and as assert async await begin break case class continue def del do done elif else elsif end ensure esac except exit export
  fi finally for from function global if import in is lambda local module my next nil None not or our pass print raise redo require rescue
  retry return self set sub then True False true false try undef unless until use when while with yield null`;
const SQL = `add alter and as asc begin by case check column commit create default delete desc distinct drop else end exists from group having
  in index inner insert into is join key left like limit not null on or order outer primary references right rollback select set table then
  union unique update values view when where with`;

const family = (words, comment, flags = "") => ({ words: new Set(words.split(/\s+/)), comment, flags });
const BRACES = family(C, "//[^\\n]*|/\\*.*?(?:\\*/|$)|^\\s*\\*(?:\\s.*|/)?$");
const HASHES = family(SCRIPT, "(?:^|(?<=\\s))#.*");
const DASHES = family(`${SCRIPT} function local repeat`, "--.*");
const TABLES = family(SQL, "--.*|/\\*.*?(?:\\*/|$)", "i");
const TAGS = family("", "<!--.*?(?:-->|$)");

const BY_ENDING = Object.create(null); // no prototype: file endings such as `constructor` must not match
const put = (known, endings) => endings.split(" ").forEach((ending) => (BY_ENDING[ending] = known));
put(BRACES, "rs js mjs cjs ts tsx jsx go java kt kts c h cc cpp hpp cs swift scala dart php css scss less json jsonc proto zig groovy");
put(HASHES, "py rb sh bash zsh fish yaml yml toml pl pm r ex exs mk cmake conf ini cfg properties tf nix dockerfile makefile gitignore");
put(DASHES, "lua hs elm ada");
put(TABLES, "sql");
put(TAGS, "html htm xml svg vue md");

/** Returns the rules for a file by its extension; null if there are none. */
export function language(path) {
  const name = path.split("/").at(-1).toLowerCase();
  return BY_ENDING[name.split(".").at(-1)] ?? null;
}

const STRINGS = "\"(?:\\\\.|[^\"\\\\])*\"?|'(?:\\\\.|[^'\\\\\\s]){1,2}'|'(?:\\\\.|[^'\\\\])*'|`(?:\\\\.|[^`\\\\])*`?";

/** Returns a line of code as strings and elements. */
export function highlight(line, rules) {
  if (!rules || line.length > LONGEST) return [line];
  const tokens = new RegExp(`(${rules.comment})|(${STRINGS})|\\b(\\d[\\w.]*)\\b|([A-Za-z_][\\w]*)`, "gm");
  const parts = [];
  let from = 0;
  for (const found of line.matchAll(tokens)) {
    const [text, comment, string, number, name] = found;
    const isWord = name && rules.words.has(rules.flags === "i" ? name.toLowerCase() : name);
    const kind = comment ? "comment" : string ? "string" : number ? "digit" : isWord ? "keyword" : null;
    if (!kind) continue;
    if (found.index > from) parts.push(line.slice(from, found.index));
    parts.push(el(`span.${kind}`, {}, text));
    from = found.index + text.length;
  }
  parts.push(line.slice(from));
  return parts;
}
