// Checks the values from a policy, so that a mistake is an error with a name instead of a trap in
// the engine's glue code.

/** Returns a string that is valid in UTF-8: a lone surrogate becomes U+FFFD. */
export function text(value, what) {
  if (typeof value !== "string") throw new TypeError(`${what} must be a string, not ${shape(value)}`);
  return value.toWellFormed();
}

/** Returns a string, or null if absent. */
export function optionalText(value, what) {
  return value === undefined || value === null ? null : text(value, what);
}

export function flag(value, what) {
  if (typeof value !== "boolean") throw new TypeError(`${what} must be true or false, not ${shape(value)}`);
  return value;
}

/** Returns an integer in the range of the contract's `u32`. */
export function u32(value, what) {
  if (!Number.isInteger(value) || value < 0 || value > 0xffff_ffff) {
    throw new RangeError(`${what} must be a whole number from 0 to 4294967295, not ${typeof value === "number" ? value : shape(value)}`);
  }
  return value;
}

/** Returns one of these words, or null if absent. */
export function optionalWord(value, words, what) {
  if (value === undefined || value === null) return null;
  if (!words.includes(value)) throw new TypeError(`${what} must be one of ${words.join(", ")}, not ${shape(value)}`);
  return value;
}

/** Returns an object without other fields than these, so that a misspelt option is an error. */
export function options(value, known, what) {
  if (!isObject(value)) throw new TypeError(`${what} must be an object, not ${shape(value)}`);
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new TypeError(`${what} have no field ${unknown}; there is ${known.join(", ")}`);
  return value;
}

/** Returns whether the value is an object and not a list. */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Describes a value in an error. */
export function shape(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}...` : value);
  return value === undefined ? "undefined" : `a ${typeof value}`;
}
