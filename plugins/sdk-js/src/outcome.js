// Outcomes: the effects of a turn, and the next step.

import { isObject, shape, text, u32 } from "./check.js";
import { checkedEffects } from "./effects.js";

const outcome = (next, effects) => ({ effects: checkedEffects(effects), next });

/** Complete: the next turn is after the object changes. */
export const awaitChange = (...effects) => outcome({ tag: "await-change" }, effects);

/** Complete: the next turn is after this many milliseconds, or after the object changes. */
export const requeueAfter = (ms, ...effects) => outcome({ tag: "requeue-after-ms", val: u32(ms, "the milliseconds of requeueAfter") }, effects);

/** Another turn soon, rate limited, without an error. */
export const requeue = (...effects) => outcome({ tag: "requeue" }, effects);

/** A temporary failure. */
export const retry = (message, ...effects) => outcome({ tag: "retry", val: text(message, "the message of retry") }, effects);

/** A permanent failure. */
export const fail = (message, ...effects) => outcome({ tag: "fail", val: text(message, "the message of fail") }, effects);

/** The clean-up of an object that is being deleted is complete. */
export const finalized = (...effects) => outcome({ tag: "finalized" }, effects);

/** Returns the value from a policy, if it is an outcome; otherwise throws. */
export function checkedOutcome(value) {
  if (isObject(value) && Array.isArray(value.effects) && isObject(value.next)) return value;
  throw new TypeError(`reconcile returned ${shape(value)} and no outcome, such as awaitChange()`);
}
