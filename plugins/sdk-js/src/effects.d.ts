import type { ObjectKey } from "./kind.js";

/** Something that the host must do, as the contract's record. */
export type Effect =
  | { tag: "apply"; val: { object: string; subresource: string | null; force: boolean; createIfAbsent: boolean; ifVersion: string | null } }
  | { tag: "patch"; val: { key: ObjectKey; subresource: string | null; type: "merge" | "json"; body: string; ifVersion: string | null } }
  | { tag: "create"; val: { object: string } }
  | { tag: "delete"; val: { key: ObjectKey; uid: string | null; ifVersion: string | null; propagation: Propagation | null } }
  | { tag: "event"; val: { type: "normal" | "warning"; reason: string; action: string; note: string; related: ObjectKey | null } }
  | { tag: "other"; val: { name: string; body: string } };

/**
 * What happens to the objects that a deleted object owns: deleted after it, deleted before it, or
 * kept.
 */
export type Propagation = "background" | "foreground" | "orphan";

export interface ApplyOptions {
  /** For example `status`. */
  subresource?: string;
  /** Take over fields that another manager owns with another value. Default: true. */
  force?: boolean;
  /** Whether the apply may create the object. Default: true, and false for a subresource. */
  createIfAbsent?: boolean;
  /** Only if the object still has this resourceVersion. */
  ifVersion?: string;
}

export interface PatchOptions {
  /** For example `status`. */
  subresource?: string;
  /** Only if the object still has this resourceVersion. */
  ifVersion?: string;
}

export interface DeleteOptions {
  /** Only the object with this uid. */
  uid?: string;
  /** Only if the object still has this resourceVersion. */
  ifVersion?: string;
  /** What happens to the objects that it owns. Default: that of the API server for the kind. */
  propagation?: Propagation;
}

export interface EventOptions {
  /** What was done or tried, in CamelCase. Default: the reason. */
  action?: string;
  /** Another object that is involved. */
  related?: ObjectKey | null;
}

/**
 * Server-side apply of these fields, with `apiVersion`, `kind` and `metadata.name`. The plugin
 * gives up a field that it applied before and that is absent now. Objects and bodies may also be
 * JSON text.
 */
export function apply(object: object | string, options?: ApplyOptions): Effect;

export const patch: {
  /** A JSON merge patch (RFC 7386): null removes a field, and a list is replaced as a whole. */
  merge(key: ObjectKey, body: object | string, options?: PatchOptions): Effect;
  /** A JSON patch (RFC 6902), operation by operation. */
  json(key: ObjectKey, options?: PatchOptions): JsonPatch;
};

/** A JSON patch that is being built; paths are JSON pointers. Each step returns a new patch. */
export interface JsonPatch {
  /**
   * Requires that `path` has this value; otherwise nothing changes, and the host retries the key
   * with a fresh snapshot.
   */
  test(path: string, value: unknown): JsonPatch;
  /** Sets `path`, whether or not it exists. */
  add(path: string, value: unknown): JsonPatch;
  /** Sets `path`, which must exist. */
  replace(path: string, value: unknown): JsonPatch;
  /** Removes `path`, which must exist. */
  remove(path: string): JsonPatch;
  /** Returns the contract's record, with all operations so far. Outcomes call it. */
  effect(): Effect;
}

/** Creates this object. */
export function create(object: object | string): Effect;

/** Deletes this object; succeeds if it is already gone. */
export function deleteObject(key: ObjectKey, options?: DeleteOptions): Effect;

/**
 * Records a Kubernetes Event about the request's object. `reason` is CamelCase and
 * machine-readable; `note` is for people.
 */
export const event: {
  /** An expected event. */
  normal(reason: string, note?: string, options?: EventOptions): Effect;
  /** A problem that a person should look at. */
  warning(reason: string, note?: string, options?: EventOptions): Effect;
};

/**
 * An `apply`, `patch`, `create` or `deleteObject` in the member cluster of this name, or in the
 * host's own for null, instead of the turn's. The plugin needs the same permission, and a
 * controller in that cluster.
 */
export function inCluster(cluster: string | null, effect: Effect | JsonPatch): Effect;

/** An effect that this version of the contract has no case for. */
export function other(name: string, body: object | string): Effect;
