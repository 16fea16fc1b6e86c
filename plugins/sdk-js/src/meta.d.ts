import type { ObjectKey } from "./kind.js";

/** Any object. Plugins with their own types name them: `plugin<VirtualMachine>({...})`. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: any;
}

/** The part of an object's `metadata` that policies use. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  /** For equality only. */
  resourceVersion?: string;
  /** Counts changes of the spec, for kinds that count them. */
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  [field: string]: any;
}

/** An object's reference to an owner. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** One aspect of an object's state, like `metav1.Condition`. */
export interface Condition {
  /** The aspect, in CamelCase: `Ready`. */
  type: string;
  status: "True" | "False" | "Unknown";
  /** The object's `metadata.generation` that this status is based on. */
  observedGeneration?: number;
  /** When `status` last changed, in RFC 3339. */
  lastTransitionTime: string;
  /** The machine-readable reason, in CamelCase. */
  reason: string;
  /** The human-readable text. */
  message: string;
}

/** A new condition. */
export interface NewCondition {
  type: string;
  status: boolean | Condition["status"];
  reason: string;
  message?: string;
  observedGeneration?: number | undefined;
  /** If absent, now, if the status changed. */
  lastTransitionTime?: string;
}

/** The fields of an object that the helpers below need. */
export interface HasMeta {
  apiVersion?: string;
  kind?: string;
  metadata?: Partial<ObjectMeta>;
}

/** Returns the key of an object, from its `apiVersion`, `kind` and `metadata`. */
export function keyOf(object: HasMeta): ObjectKey;
/**
 * Returns the reference that `controllerutil.SetControllerReference` writes: `owner` controls the
 * object with this reference.
 */
export function controllerReference(owner: HasMeta): OwnerReference;
/** Returns a plain owner reference: the object is deleted with its owner. */
export function ownerReference(owner: HasMeta): OwnerReference;
/** Returns the owner reference of the object's controller (`metav1.GetControllerOf`), or null. */
export function controllerOf(object: HasMeta): OwnerReference | null;
/** Returns whether the object's controller is `owner`, by uid (`metav1.IsControlledBy`). */
export function isControlledBy(object: HasMeta, owner: HasMeta): boolean;
/**
 * Returns whether the object has this finalizer (`controllerutil.ContainsFinalizer`). The host adds
 * and removes the description's own `finalizer`.
 */
export function hasFinalizer(object: HasMeta, finalizer: string): boolean;
/** Formats a time like `metav1.Time`: RFC 3339 in UTC, in seconds. */
export function rfc3339(time?: Date): string;
/**
 * Puts a condition into the list, in place of the one of its type; returns whether anything changed
 * (`meta.SetStatusCondition`).
 */
export function setStatusCondition(conditions: Condition[], condition: NewCondition, now?: Date): boolean;
/** Removes the condition of this type from the list; returns whether there was one. */
export function removeStatusCondition(conditions: Condition[], type: string): boolean;
/** Returns the condition of this type, or null. */
export function findStatusCondition(conditions: Condition[], type: string): Condition | null;
/** Returns whether the condition of this type exists and holds. */
export function isStatusConditionTrue(conditions: Condition[], type: string): boolean;
/** Returns whether the condition of this type exists and does not hold. */
export function isStatusConditionFalse(conditions: Condition[], type: string): boolean;
