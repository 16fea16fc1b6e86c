// The common fields of objects: metadata, owner references and status conditions, like in
// `k8s.io/apimachinery`. They are plain data.

import { isObject, shape } from "./check.js";
import { objectKey } from "./kind.js";

/** Returns the key of an object. */
export function keyOf(object) {
  if (!isObject(object) || !isObject(object.metadata)) throw new TypeError(`an object with metadata was wanted, not ${shape(object)}`);
  const [version, group = ""] = String(object.apiVersion).split("/").reverse();
  return objectKey({ group, version, kind: object.kind }, object.metadata.namespace, object.metadata.name);
}

/** Returns a plain owner reference: an object with this reference is deleted with its owner. */
export function ownerReference(owner) {
  keyOf(owner);
  return { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.metadata.name, uid: owner.metadata.uid };
}

/** Returns the reference that `controllerutil.SetControllerReference` writes. */
export function controllerReference(owner) {
  return { ...ownerReference(owner), controller: true, blockOwnerDeletion: true };
}

/** Returns the owner reference of the object's controller, or null. */
export function controllerOf(object) {
  return object.metadata?.ownerReferences?.find((owner) => owner.controller === true) ?? null;
}

/** Returns whether the object's controller is `owner`, by uid. */
export function isControlledBy(object, owner) {
  const controller = controllerOf(object);
  return controller !== null && controller.uid === owner.metadata?.uid;
}

/** Returns whether the object has this finalizer. */
export function hasFinalizer(object, finalizer) {
  return object.metadata?.finalizers?.includes(finalizer) ?? false;
}

/** Formats a time like `metav1.Time`: RFC 3339 in UTC, in seconds. */
export function rfc3339(time = new Date()) {
  return `${time.toISOString().slice(0, 19)}Z`;
}

/**
 * Puts a condition into the list, in place of the one of its type. The transition time changes only
 * if the status does. Returns whether anything changed.
 */
export function setStatusCondition(conditions, { type, status, reason, message = "", observedGeneration, lastTransitionTime }, now = new Date()) {
  const old = findStatusCondition(conditions, type);
  const said = typeof status === "boolean" ? (status ? "True" : "False") : status;
  const time = old?.status === said ? old.lastTransitionTime : (lastTransitionTime ?? rfc3339(now));
  const condition = { type, status: said, ...(observedGeneration ? { observedGeneration } : {}), lastTransitionTime: time, reason, message };
  if (old === null) {
    conditions.push(condition);
    return true;
  }
  const changed = old.status !== said || old.reason !== reason || old.message !== message || (old.observedGeneration ?? 0) !== (observedGeneration ?? 0);
  conditions[conditions.indexOf(old)] = condition;
  return changed;
}

/** Removes the condition of this type from the list. Returns whether there was one. */
export function removeStatusCondition(conditions, type) {
  const at = conditions.findIndex((condition) => condition.type === type);
  if (at >= 0) conditions.splice(at, 1);
  return at >= 0;
}

/** Returns the condition of this type, or null. */
export function findStatusCondition(conditions, type) {
  return conditions.find((condition) => condition.type === type) ?? null;
}

/** Returns whether the condition of this type exists and holds. */
export function isStatusConditionTrue(conditions, type) {
  return findStatusCondition(conditions, type)?.status === "True";
}

/** Returns whether the condition of this type exists and does not hold. */
export function isStatusConditionFalse(conditions, type) {
  return findStatusCondition(conditions, type)?.status === "False";
}
