// Effects: what the host must do. The policy itself never writes.

import { flag, isObject, optionalText, optionalWord, options, shape, text } from "./check.js";
import { stringify } from "./json.js";
import { checkedKey } from "./kind.js";

/** Server-side apply of these fields, with apiVersion, kind and metadata. */
export function apply(object, settings = {}) {
  const {
    subresource,
    force = true,
    createIfAbsent,
    ifVersion,
  } = options(settings, ["subresource", "force", "createIfAbsent", "ifVersion"], "the options of apply");
  return effect("apply", {
    object: written(object, "the object to apply"),
    subresource: optionalText(subresource, "the subresource of apply"),
    force: flag(force, "force of apply"),
    createIfAbsent: flag(createIfAbsent ?? (subresource === undefined || subresource === null), "createIfAbsent of apply"),
    ifVersion: optionalText(ifVersion, "ifVersion of apply"),
  });
}

export const patch = {
  /** A JSON merge patch. */
  merge(key, body, settings = {}) {
    return effect("patch", { ...patched(key, settings), type: "merge", body: written(body, "the body of a merge patch") });
  },

  /** A JSON patch, operation by operation. */
  json(key, settings = {}) {
    return new JsonPatch(patched(key, settings), []);
  },
};

function patched(key, settings) {
  const { subresource, ifVersion } = options(settings, ["subresource", "ifVersion"], "the options of patch");
  return { key: checkedKey(key), subresource: optionalText(subresource, "the subresource of patch"), ifVersion: optionalText(ifVersion, "ifVersion of patch") };
}

/**
 * A JSON patch that is being built. Each step returns a new patch, so that patches can share a
 * beginning.
 */
export class JsonPatch {
  #target;
  #operations;

  constructor(target, operations) {
    this.#target = target;
    this.#operations = operations;
  }

  #with(operation) {
    text(operation.path, `the path of ${operation.op}`);
    return new JsonPatch(this.#target, [...this.#operations, stringify(operation)]);
  }

  #withValue(op, path, value) {
    if (value === undefined) throw new TypeError(`${op} of ${shape(path)} has no value`);
    return this.#with({ op, path, value });
  }

  test(path, value) {
    return this.#withValue("test", path, value);
  }

  add(path, value) {
    return this.#withValue("add", path, value);
  }

  replace(path, value) {
    return this.#withValue("replace", path, value);
  }

  remove(path) {
    return this.#with({ op: "remove", path });
  }

  /** Returns the effect, with all operations so far. */
  effect() {
    return effect("patch", { ...this.#target, type: "json", body: `[${this.#operations.join(",")}]` });
  }
}

/** Creates an object. */
export function create(object) {
  return effect("create", { object: written(object, "the object to create") });
}

/** Deletes an object. */
export function deleteObject(key, settings = {}) {
  const { uid, ifVersion, propagation } = options(settings, ["uid", "ifVersion", "propagation"], "the options of deleteObject");
  return effect("delete", {
    key: checkedKey(key),
    uid: optionalText(uid, "the uid of deleteObject"),
    ifVersion: optionalText(ifVersion, "ifVersion of deleteObject"),
    propagation: optionalWord(propagation, ["background", "foreground", "orphan"], "the propagation of deleteObject"),
  });
}

const eventOf =
  (type) =>
  (reason, note = "", settings = {}) => {
    const { action = "", related } = options(settings, ["action", "related"], "the options of an event");
    return effect("event", {
      type,
      reason: text(reason, "the reason of an event"),
      action: text(action, "the action of an event"),
      note: text(note, "the note of an event"),
      related: related === undefined || related === null ? null : checkedKey(related),
    });
  };

/** Records an Event about the request's object. */
export const event = { normal: eventOf("normal"), warning: eventOf("warning") };

/** An effect that this version of the contract has no case for. */
export function other(name, body) {
  return effect("other", { name: text(name, "the name of an effect"), body: written(body, "the body of an effect") });
}

/** An effect in the member cluster of this name, or in the host's own for null. */
export function inCluster(cluster, effect) {
  const name = cluster === null ? null : text(cluster, "the cluster of inCluster");
  const { tag, val } = checkedEffect(effect, "the effect of inCluster");
  if (!Object.hasOwn(FORMS, tag)) throw new TypeError(`the effect of inCluster is ${shape(tag)}; there is ${Object.keys(FORMS).join(", ")}`);
  return other("in-cluster", `{"cluster":${JSON.stringify(name)},"effect":{"${tag}":${members(FORMS[tag](val))}}}`);
}

/** The members of an effect in the body of another one, each with its JSON text. */
const FORMS = {
  apply: ({ object, subresource, force, createIfAbsent, ifVersion }) => ({
    object,
    subresource: quoted(subresource),
    force: String(force),
    createIfAbsent: String(createIfAbsent),
    ifVersion: quoted(ifVersion),
  }),
  patch: ({ key, subresource, type, body, ifVersion }) => ({
    key: keyForm(key),
    subresource: quoted(subresource),
    type: quoted(type),
    body,
    ifVersion: quoted(ifVersion),
  }),
  create: ({ object }) => ({ object }),
  delete: ({ key, uid, ifVersion, propagation }) => ({
    key: keyForm(key),
    uid: quoted(uid),
    ifVersion: quoted(ifVersion),
    propagation: quoted(propagation),
  }),
};

function keyForm({ kind: { group, version, kind }, namespace, name }) {
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return members({ apiVersion: quoted(apiVersion), kind: quoted(kind), namespace: quoted(namespace), name: quoted(name) });
}

function quoted(value) {
  return value === null ? null : JSON.stringify(value);
}

/** Returns the JSON text of an object with these members, without those that are null. */
function members(texts) {
  const given = Object.entries(texts).filter(([, text]) => text !== null);
  return `{${given.map(([name, text]) => `"${name}":${text}`).join(",")}}`;
}

function effect(tag, val) {
  return { tag, val };
}

/** Returns the JSON text of a value; a string is taken as JSON text, as the host passes it. */
function written(value, what) {
  if (typeof value === "string") {
    JSON.parse(value);
    return value.toWellFormed();
  }
  if (!isObject(value)) throw new TypeError(`${what} must be an object, not ${shape(value)}`);
  return stringify(value);
}

/**
 * Converts a policy's effects to the contract's list; the error for an invalid effect names its
 * index.
 */
export function checkedEffects(effects) {
  return effects.flat().map((item, index) => checkedEffect(item, `effect ${index} of the outcome`));
}

function checkedEffect(item, what) {
  if (item instanceof JsonPatch) return item.effect();
  if (!isObject(item) || typeof item.tag !== "string" || !isObject(item.val)) throw new TypeError(`${what} is ${shape(item)}, and no effect`);
  return item;
}
