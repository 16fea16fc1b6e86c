// What all objects have: metadata, owner references and status conditions, after `k8s.io/apimachinery`. Plain data, in and out.

import { isObject, shape } from "./check.js";
import { objectKey } from "./kind.js";

/** The key of an object. */
export function keyOf(object) {
  if (!isObject(object) || !isObject(object.metadata)) throw new TypeError(`an object with metadata was wanted, not ${shape(object)}`);
  const [version, group = ""] = String(object.apiVersion).split("/").reverse();
  return objectKey({ group, version, kind: object.kind }, object.metadata.namespace, object.metadata.name);
}

/** A plain owner: an object that carries this is deleted with it, no more. */
export function ownerReference(owner) {
  keyOf(owner);
  return { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.metadata.name, uid: owner.metadata.uid };
}

/** The reference that `controllerutil.SetControllerReference` writes. */
export function controllerReference(owner) {
  return { ...ownerReference(owner), controller: true, blockOwnerDeletion: true };
}

/** The owner reference of the object's controller, or null. */
export function controllerOf(object) {
  return object.metadata?.ownerReferences?.find((owner) => owner.controller === true) ?? null;
}

/** Whether the object's controller is this one, by uid. */
export function isControlledBy(object, owner) {
  const controller = controllerOf(object);
  return controller !== null && controller.uid === owner.metadata?.uid;
}

/** Whether the object carries this finalizer. */
export function hasFinalizer(object, finalizer) {
  return object.metadata?.finalizers?.includes(finalizer) ?? false;
}

/** A time as `metav1.Time` writes it: RFC 3339 in UTC, to the second. */
export function rfc3339(time = new Date()) {
  return `${time.toISOString().slice(0, 19)}Z`;
}

/** Puts a condition into the list, in place of the one of its type. The transition time moves only when the status changes. True if anything changed. */
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

/** Takes the condition of this type out of the list. True if there was one. */
export function removeStatusCondition(conditions, type) {
  const at = conditions.findIndex((condition) => condition.type === type);
  if (at >= 0) conditions.splice(at, 1);
  return at >= 0;
}

/** The condition of this type, or null. */
export function findStatusCondition(conditions, type) {
  return conditions.find((condition) => condition.type === type) ?? null;
}

/** Whether the condition of this type is there and holds. */
export function isStatusConditionTrue(conditions, type) {
  return findStatusCondition(conditions, type)?.status === "True";
}

/** Whether the condition of this type is there and does not hold. */
export function isStatusConditionFalse(conditions, type) {
  return findStatusCondition(conditions, type)?.status === "False";
}
