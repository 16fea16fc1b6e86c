// Reads of other objects and of the operator's settings. In native tests TestHost of testing.js
// answers them.

import * as host from "#host";
import { flag, isObject, optionalText, options, shape, text, u32 } from "./check.js";
import { parse } from "./json.js";
import { checkedKey, gvk, nameOf, objectKey } from "./kind.js";

/** Why a read could not be answered. */
export class ReadError extends Error {
  constructor(what, { tag, val: told }) {
    // As in a request: QuickJS' components read a u32 beyond 2^31 as a negative number.
    const val = typeof told === "number" ? told >>> 0 : told;
    super(`${what} cannot be read${REASONS[tag]?.(val) ?? `: ${tag}`}`);
    this.name = "ReadError";
    this.code = tag;
    this.detail = val;
  }
}

const REASONS = {
  "not-watched": (kind) => `: the description does not let this controller read ${kind}`,
  "too-large": (limit) => `: the answer is larger than ${limit} bytes`,
  invalid: (reason) => `: ${reason}`,
  unavailable: (reason) => ` live: ${reason}`,
};

const FIELDS = ["kind", "namespace", "labelSelector", "index", "owner", "metadataOnly", "limit", "continue"];

/** Converts a policy's query to the contract's record. */
function checkedQuery(query) {
  const { kind, namespace, labelSelector, index, owner, metadataOnly = false, limit = 0, continue: token } = options(query, FIELDS, "queries");
  if (index !== undefined && index !== null && !isObject(index))
    throw new TypeError(`the index of a query must have a name and a value, not be ${shape(index)}`);
  return {
    kind: gvk(kind),
    namespace: optionalText(namespace, "the namespace of a query"),
    labelSelector: optionalText(labelSelector, "the labelSelector of a query"),
    index: index ? { name: text(index.name, "the name of a query's index"), value: text(index.value, "the value of a query's index") } : null,
    owner: optionalText(owner, "the owner of a query"),
    metadataOnly: flag(metadataOnly, "metadataOnly of a query"),
    limit: u32(limit, "the limit of a query"),
    continue: optionalText(token, "continue of a query"),
  };
}

/**
 * Calls the host. Engines throw different errors for the contract's error; all of them put it into
 * `payload`.
 */
function ask(what, read, question) {
  try {
    return read(question);
  } catch (error) {
    if (typeof error?.payload?.tag === "string") throw new ReadError(what, error.payload);
    throw error;
  }
}

const one = (read) => (key) => {
  const checked = checkedKey(key);
  return ask(nameOf(checked), read, checked) ?? null;
};

const page = (read) => (query) => {
  const checked = checkedQuery(query);
  const { objects, continue: token } = ask(`the list of ${checked.kind.kind}`, read, checked);
  return { objects, continue: token ?? null };
};

const raw = {
  get: one((key) => host.cluster.get(key)),
  getMany: (keys) => ask("a batch of objects", (keys) => host.cluster.getMany(keys), keys.map(checkedKey)).map((text) => text ?? null),
  list: page((query) => host.cluster.list(query)),
  getLive: one((key) => host.cluster.getLive(key)),
  listLive: page((query) => host.cluster.listLive(query)),
};

const parsed = (text) => (text === null ? null : parse(text));

/** Yields all matching texts, page by page. */
function* texts(list, query) {
  for (let next = query; next !== null;) {
    const { objects, continue: token } = list(next);
    yield* objects;
    next = token === null ? null : { ...query, continue: token };
  }
}

const all = (list) => (query) => Array.from(texts(list, query), parsed);

export const cluster = {
  get: (kind, namespace, name) => parsed(raw.get(objectKey(kind, namespace, name))),
  getMany: (keys) => raw.getMany(keys).map(parsed),
  list: all(raw.list),
  getLive: (kind, namespace, name) => parsed(raw.getLive(objectKey(kind, namespace, name))),
  listLive: all(raw.listLive),
  listOwned: (kind, namespace, owner) => cluster.list({ kind, namespace, owner }),
  count(query) {
    let count = 0;
    for (const _ of texts(raw.list, { ...query, metadataOnly: true })) count += 1;
    return count;
  },
  raw,
};

/** Returns a setting that the operator gave this plugin. */
export function setting(name) {
  return host.setting(text(name, "the name of a setting")) ?? null;
}
