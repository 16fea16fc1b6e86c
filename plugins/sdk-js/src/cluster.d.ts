import type { Kind, ObjectKey } from "./kind.js";
import type { KubeObject } from "./meta.js";

/** Which objects to list. All conditions hold together. */
export interface Query {
  kind: Kind;
  /** Left out: all that the host watches. */
  namespace?: string | null;
  /** As kubectl writes it: `app=web,!legacy`. */
  labelSelector?: string | null;
  /** Only objects with this value in an index of the description. Not for live reads. */
  index?: { name: string; value: string } | null;
  /** Only objects that have an owner reference with this uid. Not for live reads. */
  owner?: string | null;
  /** Only `apiVersion`, `kind` and `metadata` of each. */
  metadataOnly?: boolean;
  /** At most so many objects in one page; 0: 500. */
  limit?: number;
  /** The `continue` of the page before. */
  continue?: string | null;
}

/** One answer to a query, as texts. */
export interface Page {
  objects: string[];
  /** Null: this was the last. */
  continue: string | null;
}

/** Why a read could not be answered. An object that does not exist is no error: reads answer null. */
export class ReadError extends Error {
  code: "not-watched" | "too-large" | "invalid" | "unavailable";
  /** The kind, the limit in bytes, or the reason. */
  detail: string | number;
}

/** Reads of other objects, from the host's cache and live. All kinds must be named in the description. Reads are synchronous and throw `ReadError`. */
export const cluster: {
  /** One object of the cache; null if it does not exist. A namespace of null: a cluster-scoped kind. */
  get<T extends object = KubeObject>(kind: Kind, namespace: string | null, name: string): T | null;
  /** Many objects in one crossing, in the order of the keys. */
  getMany<T extends object = KubeObject>(keys: ObjectKey[]): (T | null)[];
  /** All objects of the cache that answer the query, page by page. */
  list<T extends object = KubeObject>(query: Query): T[];
  /** As `get`, from the API server itself. */
  getLive<T extends object = KubeObject>(kind: Kind, namespace: string | null, name: string): T | null;
  /** As `list`, from the API server itself. */
  listLive<T extends object = KubeObject>(query: Query): T[];
  /** All objects of a kind in the cache that have an owner reference with this uid; a namespace of null: in all. */
  listOwned<T extends object = KubeObject>(kind: Kind, namespace: string | null, ownerUid: string): T[];
  /** How many objects of the cache answer the query. */
  count(query: Query): number;
  /** The functions of the contract: JSON texts, one page at a time. */
  raw: {
    get(key: ObjectKey): string | null;
    getMany(keys: ObjectKey[]): (string | null)[];
    list(query: Query): Page;
    getLive(key: ObjectKey): string | null;
    listLive(query: Query): Page;
  };
};

/** A setting that the operator gave this plugin (`--setting PLUGIN.NAME=VALUE`); null if there is none. */
export function setting(name: string): string | null;
