import type { ObjectKey } from "./kind.js";

/** Something that the host is to do, as the contract's record. */
export type Effect =
  | { tag: "apply"; val: { object: string; subresource: string | null; force: boolean; createIfAbsent: boolean; ifVersion: string | null } }
  | { tag: "patch"; val: { key: ObjectKey; subresource: string | null; type: "merge" | "json"; body: string; ifVersion: string | null } }
  | { tag: "create"; val: { object: string } }
  | { tag: "delete"; val: { key: ObjectKey; uid: string | null; ifVersion: string | null; propagation: Propagation | null } }
  | { tag: "event"; val: { type: "normal" | "warning"; reason: string; action: string; note: string; related: ObjectKey | null } }
  | { tag: "other"; val: { name: string; body: string } };

/** What happens to the objects that a deleted object owns: deleted after it, deleted before it, or left. */
export type Propagation = "background" | "foreground" | "orphan";

export interface ApplyOptions {
  /** Such as `status`. */
  subresource?: string;
  /** Take over fields that another manager owns with another value. Default: true. */
  force?: boolean;
  /** May the apply create the object? Default: true, and false for a subresource. */
  createIfAbsent?: boolean;
  /** Only if the object still has this resourceVersion. */
  ifVersion?: string;
}

export interface PatchOptions {
  /** Such as `status`. */
  subresource?: string;
  /** Only if the object still has this resourceVersion. */
  ifVersion?: string;
}

export interface DeleteOptions {
  /** Only the object with this uid. */
  uid?: string;
  /** Only if the object still has this resourceVersion. */
  ifVersion?: string;
  /** What happens to the objects that it owns; left out: what the API server does for the kind. */
  propagation?: Propagation;
}

export interface EventOptions {
  /** What was done or tried, in CamelCase; left out: the reason. */
  action?: string;
  /** Another object that has to do with it. */
  related?: ObjectKey | null;
}

/**
 * Server-side apply of these fields, with `apiVersion`, `kind` and `metadata.name`. A field that was applied before and is left out now is given up.
 * Objects and bodies may also be given as JSON text.
 */
export function apply(object: object | string, options?: ApplyOptions): Effect;

export const patch: {
  /** A JSON merge patch (RFC 7386): null removes a field, a list is replaced whole. */
  merge(key: ObjectKey, body: object | string, options?: PatchOptions): Effect;
  /** A JSON patch (RFC 6902), operation by operation. */
  json(key: ObjectKey, options?: PatchOptions): JsonPatch;
};

/** A JSON patch in the making; paths are JSON pointers. Each step makes a new one. */
export interface JsonPatch {
  /** Go on only if `path` has this value; else nothing changes, and the key is tried again with a fresh snapshot. */
  test(path: string, value: unknown): JsonPatch;
  /** Set `path`, whether it is there or not. */
  add(path: string, value: unknown): JsonPatch;
  /** Set `path`, which must be there. */
  replace(path: string, value: unknown): JsonPatch;
  /** Remove `path`, which must be there. */
  remove(path: string): JsonPatch;
  /** The contract's record, with all operations so far. Outcomes call it. */
  effect(): Effect;
}

/** Creates this object. */
export function create(object: object | string): Effect;

/** Deletes this object; one that is gone already is done. */
export function deleteObject(key: ObjectKey, options?: DeleteOptions): Effect;

/** Records a Kubernetes Event about the request's object. `reason` is CamelCase, for machines; `note` is for people. */
export const event: {
  /** Something that should happen happened. */
  normal(reason: string, note?: string, options?: EventOptions): Effect;
  /** Something that a person should look at. */
  warning(reason: string, note?: string, options?: EventOptions): Effect;
};

/** An effect that this version of the contract has no case for. */
export function other(name: string, body: object | string): Effect;
