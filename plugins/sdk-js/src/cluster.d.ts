import type { Kind, ObjectKey } from "./kind.js";
import type { KubeObject } from "./meta.js";

/** Selects the objects to list. All conditions must hold. */
export interface Query {
  kind: Kind;
  /** If absent, all namespaces that the host watches. */
  namespace?: string | null;
  /** In kubectl's form: `app=web,!legacy`. */
  labelSelector?: string | null;
  /** Only objects with this value in an index of the description. Not for live reads. */
  index?: { name: string; value: string } | null;
  /** Only objects that have an owner reference with this uid. Not for live reads. */
  owner?: string | null;
  /** Only `apiVersion`, `kind` and `metadata` of each object. */
  metadataOnly?: boolean;
  /** The maximum number of objects in one page; 0: 500. */
  limit?: number;
  /** The `continue` of the previous page. */
  continue?: string | null;
}

/** One answer to a query, as texts. */
export interface Page {
  objects: string[];
  /** Null after the last page. */
  continue: string | null;
}

/** Why a read could not be answered. A missing object is not an error: reads return null. */
export class ReadError extends Error {
  code: "not-watched" | "too-large" | "invalid" | "unavailable";
  /** The kind, the limit in bytes, or the reason. */
  detail: string | number;
}

/**
 * Reads of other objects, from the host's cache and live. The description must name all kinds.
 * Reads are synchronous and throw `ReadError`.
 */
export const cluster: {
  /**
   * Returns one object of the cache; null if it does not exist. The namespace is null for a
   * cluster-scoped kind.
   */
  get<T extends object = KubeObject>(kind: Kind, namespace: string | null, name: string): T | null;
  /** Returns many objects with one call of the host, in the order of the keys. */
  getMany<T extends object = KubeObject>(keys: ObjectKey[]): (T | null)[];
  /** Returns all matching objects of the cache, page by page. */
  list<T extends object = KubeObject>(query: Query): T[];
  /** Like `get`, but asks the API server. */
  getLive<T extends object = KubeObject>(kind: Kind, namespace: string | null, name: string): T | null;
  /** Like `list`, but asks the API server. */
  listLive<T extends object = KubeObject>(query: Query): T[];
  /**
   * Returns all objects of a kind in the cache that have an owner reference with this uid; in all
   * namespaces if the namespace is null.
   */
  listOwned<T extends object = KubeObject>(kind: Kind, namespace: string | null, ownerUid: string): T[];
  /** Returns the number of matching objects in the cache. */
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

/**
 * Returns a setting that the operator gave this plugin (`--setting PLUGIN.NAME=VALUE`); null if it
 * is not set.
 */
export function setting(name: string): string | null;
