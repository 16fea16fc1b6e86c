// The JSON patch (RFC 6902) between two JSON documents. It must not know what they are.

import { isObject } from "./check.js";

/** Returns the operations that make `old` into `next`, in the order of the members' names. */
export function diff(old, next) {
  const operations = [];
  compare("", old, next, operations);
  return operations;
}

function compare(path, old, next, to) {
  if (isEqual(old, next)) return;
  if (isObject(old) && isObject(next)) members(path, old, next, to);
  else if (Array.isArray(old) && Array.isArray(next)) elements(path, old, next, to);
  else to.push({ op: "replace", path, value: next });
}

function members(path, old, next, to) {
  const names = new Set([...Object.keys(old), ...Object.keys(next)]);
  for (const name of [...names].sort()) {
    const below = `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (!Object.hasOwn(next, name)) to.push({ op: "remove", path: below });
    else if (!Object.hasOwn(old, name)) to.push({ op: "add", path: below, value: next[name] });
    else compare(below, old[name], next[name], to);
  }
}

/**
 * Equal elements at both ends stay; those between are compared one by one, and what is left over is
 * added or removed.
 */
function elements(path, old, next, to) {
  const least = Math.min(old.length, next.length);
  let start = 0;
  while (start < least && isEqual(old[start], next[start])) start += 1;
  let end = 0;
  while (end < least - start && isEqual(old[old.length - 1 - end], next[next.length - 1 - end])) end += 1;
  const both = least - end;
  for (let at = start; at < both; at += 1) compare(`${path}/${at}`, old[at], next[at], to);
  for (let at = both; at < next.length - end; at += 1) to.push({ op: "add", path: `${path}/${at}`, value: next[at] });
  // From the back, so that no removal moves what a later one names.
  for (let at = old.length - end - 1; at >= both; at -= 1) to.push({ op: "remove", path: `${path}/${at}` });
}

function isEqual(a, b) {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, index) => isEqual(item, b[index]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isEqual(a[name], b[name]));
}
