// Write a vmhost policy in JavaScript or TypeScript: one function, `plugin`, and helpers for the
// records of the contract (`wit/v1`).

export { cluster, ReadError, setting } from "./src/cluster.js";
export { core, kind, objectKey } from "./src/kind.js";
export { apply, create, deleteObject, event, inCluster, other, patch } from "./src/effects.js";
export { parse, stringify } from "./src/json.js";
export { log } from "./src/log.js";
export {
  controllerOf,
  controllerReference,
  findStatusCondition,
  hasFinalizer,
  isControlledBy,
  isStatusConditionFalse,
  isStatusConditionTrue,
  keyOf,
  ownerReference,
  removeStatusCondition,
  rfc3339,
  setStatusCondition,
} from "./src/meta.js";
export { awaitChange, fail, finalized, requeue, requeueAfter, retry } from "./src/outcome.js";
export { plugin } from "./src/plugin.js";
export { allow, deny } from "./src/review.js";
