// JSON that preserves integers beyond 2^53 as BigInt, both ways. Documents without them use the
// engine's own JSON.

import { shape } from "./check.js";

/**
 * Parses a JSON document. An integer that a double cannot hold is a BigInt; other values are as
 * from JSON.parse.
 */
export function parse(text) {
  const value = JSON.parse(text);
  // JSON.parse has checked that the text is well-formed.
  return hasLongNumber(value) ? new Reader(text).value() : value;
}

/**
 * Writes a JSON document. A value that JSON lacks (NaN, Infinity, undefined itself) is an error and
 * not null, because null in a merge patch removes the field.
 */
export function stringify(value) {
  let big = false;
  const text = JSON.stringify(value, (key, value) => {
    if (typeof value === "bigint") {
      big = true;
      return 0;
    }
    if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${value}${key === "" ? "" : ` (in ${key})`} is no JSON number`);
    return value;
  });
  if (text === undefined) throw new TypeError(`${shape(value)} cannot be written as JSON`);
  return big ? write(value, "") : text;
}

/**
 * Returns whether a number is too large for a double to hold all of its digits. Visiting the values
 * takes a third of the time of scanning the characters.
 */
function hasLongNumber(value) {
  if (typeof value === "number") return value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER;
  if (typeof value === "object" && value !== null) {
    for (const name in value) {
      const field = value[name];
      if (typeof field !== "string" && hasLongNumber(field)) return true;
    }
  }
  return false;
}

const NUMBER = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y;

/** Parses a text that JSON.parse has accepted. */
class Reader {
  #text;
  #at = 0;

  constructor(text) {
    this.#text = text;
  }

  value() {
    switch (this.#peek()) {
      case "{":
        return this.#object();
      case "[":
        return this.#list();
      case '"':
        return this.#string();
      case "t":
        return this.#word("true", true);
      case "f":
        return this.#word("false", false);
      case "n":
        return this.#word("null", null);
      default:
        return this.#number();
    }
  }

  #peek() {
    while (" \t\r\n".includes(this.#text[this.#at])) this.#at += 1;
    return this.#text[this.#at];
  }

  #object() {
    const object = {};
    for (let open = "{"; this.#more(open, "}"); open = ",") {
      this.#peek();
      const name = this.#string();
      this.#peek();
      this.#at += 1;
      const value = this.value();
      // An assignment to __proto__ would not create a field.
      if (name === "__proto__") Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
      else object[name] = value;
    }
    return object;
  }

  #list() {
    const list = [];
    for (let open = "["; this.#more(open, "]"); open = ",") list.push(this.value());
    return list;
  }

  /** Skips the comma before the next member, or the closing bracket. */
  #more(open, close) {
    const sign = this.#peek();
    this.#at += 1;
    if (sign !== open) return false;
    if (open === "," || this.#peek() !== close) return true;
    this.#at += 1;
    return false;
  }

  #string() {
    const start = this.#at;
    let end = start;
    do end = this.#text.indexOf('"', end + 1);
    while (this.#isEscaped(end));
    this.#at = end + 1;
    return JSON.parse(this.#text.slice(start, end + 1));
  }

  #isEscaped(at) {
    let before = at - 1;
    while (this.#text[before] === "\\") before -= 1;
    return (at - before) % 2 === 0;
  }

  #word(word, value) {
    this.#at += word.length;
    return value;
  }

  #number() {
    NUMBER.lastIndex = this.#at;
    const [token, fraction, exponent] = NUMBER.exec(this.#text);
    this.#at = NUMBER.lastIndex;
    const value = Number(token);
    const exact = fraction !== undefined || exponent !== undefined || Number.isSafeInteger(value);
    return exact ? value : BigInt(token);
  }
}

/** Like JSON.stringify, which has accepted the value except for its BigInts. */
function write(value, key) {
  if (typeof value?.toJSON === "function") value = value.toJSON(key);
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map((item, index) => write(item, String(index)) ?? "null").join(",")}]`;
  if (typeof value !== "object" || value === null || value instanceof String || value instanceof Number || value instanceof Boolean)
    return JSON.stringify(value);
  const fields = [];
  for (const name of Object.keys(value)) {
    const text = write(value[name], name);
    if (text !== undefined) fields.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${fields.join(",")}}`;
}
