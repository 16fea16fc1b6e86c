import type { ObjectKey } from "./kind.js";

/** Any object. Plugins with types of their own name them: `plugin<VirtualMachine>({...})`. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: any;
}

/** The part of an object's `metadata` that policies look at. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  /** For equality only. */
  resourceVersion?: string;
  /** Counts the changes of the specification, for kinds that count them. */
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  [field: string]: any;
}

/** An object's pointer to one that it belongs to. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** One aspect of an object's state, as `metav1.Condition`. */
export interface Condition {
  /** Which aspect, in CamelCase: `Ready`. */
  type: string;
  status: "True" | "False" | "Unknown";
  /** The object's `metadata.generation` that this was found for. */
  observedGeneration?: number;
  /** When `status` last changed, in RFC 3339. */
  lastTransitionTime: string;
  /** Why, in CamelCase, for machines. */
  reason: string;
  /** For people. */
  message: string;
}

/** A condition that was found now. */
export interface NewCondition {
  type: string;
  status: boolean | Condition["status"];
  reason: string;
  message?: string;
  observedGeneration?: number | undefined;
  /** Left out: now, if the status changed. */
  lastTransitionTime?: string;
}

/** What the helpers below need of an object. */
export interface HasMeta {
  apiVersion?: string;
  kind?: string;
  metadata?: Partial<ObjectMeta>;
}

/** The key of an object, from its `apiVersion`, `kind` and `metadata`. */
export function keyOf(object: HasMeta): ObjectKey;
/** The reference that `controllerutil.SetControllerReference` writes: `owner` controls the object that carries it. */
export function controllerReference(owner: HasMeta): OwnerReference;
/** A plain owner: the object is deleted with it, no more. */
export function ownerReference(owner: HasMeta): OwnerReference;
/** The owner reference of the object's controller (`metav1.GetControllerOf`), or null. */
export function controllerOf(object: HasMeta): OwnerReference | null;
/** Whether the object's controller is this one, by uid (`metav1.IsControlledBy`). */
export function isControlledBy(object: HasMeta, owner: HasMeta): boolean;
/** Whether the object carries this finalizer (`controllerutil.ContainsFinalizer`). The description's own `finalizer` is put on and taken off by the host. */
export function hasFinalizer(object: HasMeta, finalizer: string): boolean;
/** A time as `metav1.Time` writes it: RFC 3339 in UTC, to the second. */
export function rfc3339(time?: Date): string;
/** Puts a condition into the list, in place of the one of its type; true if anything changed (`meta.SetStatusCondition`). */
export function setStatusCondition(conditions: Condition[], condition: NewCondition, now?: Date): boolean;
/** Takes the condition of this type out of the list; true if there was one. */
export function removeStatusCondition(conditions: Condition[], type: string): boolean;
/** The condition of this type, or null. */
export function findStatusCondition(conditions: Condition[], type: string): Condition | null;
/** Whether the condition of this type is there and holds. */
export function isStatusConditionTrue(conditions: Condition[], type: string): boolean;
/** Whether the condition of this type is there and does not hold. */
export function isStatusConditionFalse(conditions: Condition[], type: string): boolean;
