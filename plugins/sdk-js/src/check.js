// What a policy hands over is checked here, so that a mistake is an error with a name and not a trap in the engine's own glue.

/** A string, fit for UTF-8: a lone surrogate becomes U+FFFD. */
export function text(value, what) {
  if (typeof value !== "string") throw new TypeError(`${what} must be a string, not ${shape(value)}`);
  return value.toWellFormed();
}

/** A string, or null where there is none. */
export function optionalText(value, what) {
  return value === undefined || value === null ? null : text(value, what);
}

/** A boolean. */
export function flag(value, what) {
  if (typeof value !== "boolean") throw new TypeError(`${what} must be true or false, not ${shape(value)}`);
  return value;
}

/** A whole number that fits the contract's `u32`. */
export function u32(value, what) {
  if (!Number.isInteger(value) || value < 0 || value > 0xffff_ffff) {
    throw new RangeError(`${what} must be a whole number from 0 to 4294967295, not ${typeof value === "number" ? value : shape(value)}`);
  }
  return value;
}

/** One of some words, or null where there is none. */
export function optionalWord(value, words, what) {
  if (value === undefined || value === null) return null;
  if (!words.includes(value)) throw new TypeError(`${what} must be one of ${words.join(", ")}, not ${shape(value)}`);
  return value;
}

/** An object with no other fields than these: a misspelt option is no option. */
export function options(value, known, what) {
  if (!isObject(value)) throw new TypeError(`${what} must be an object, not ${shape(value)}`);
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new TypeError(`${what} have no field ${unknown}; there is ${known.join(", ")}`);
  return value;
}

/** Whether it is an object and no list. */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a value is, in a message. */
export function shape(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}...` : value);
  return value === undefined ? "undefined" : `a ${typeof value}`;
}
