// Names of kinds and objects.

import { isObject, optionalText, shape, text } from "./check.js";

/**
 * Returns a kind of an API group, in the form of descriptions. It can be spread into a watch or a
 * permission.
 */
export function kind(group, version, name) {
  text(group, "the group of a kind");
  return Object.freeze({ ...(group === "" ? {} : { group }), version: text(version, "the version of a kind"), kind: text(name, "the name of a kind") });
}

/** Returns a kind of the core group. */
export function core(version, name) {
  return kind("", version, name);
}

/** Names an object; the namespace is null for a cluster-scoped kind. */
export function objectKey(kind, namespace, name) {
  return { kind: gvk(kind), namespace: optionalText(namespace, "the namespace of a key"), name: text(name, "the name of a key") };
}

/** Returns the contract's record of a kind, in which the core group is the empty string. */
export function gvk(kind) {
  if (!isObject(kind)) throw new TypeError(`a kind must be made by kind() or core(), not be ${shape(kind)}`);
  return {
    group: text(kind.group ?? "", "the group of a kind"),
    version: text(kind.version, "the version of a kind"),
    kind: text(kind.kind, "the name of a kind"),
  };
}

/** Converts a key from a policy to the contract's record. */
export function checkedKey(key) {
  if (!isObject(key)) throw new TypeError(`a key must be made by objectKey() or be request.key, not be ${shape(key)}`);
  return objectKey(key.kind, key.namespace, key.name);
}

/** Returns `Pod default/web`, for messages. */
export function nameOf(key) {
  return `${key.kind.kind} ${key.namespace === null ? "" : `${key.namespace}/`}${key.name}`;
}
