// Outcomes: the effects of a turn, and what comes then.

import { isObject, shape, text, u32 } from "./check.js";
import { checkedEffects } from "./effects.js";

const outcome = (next, effects) => ({ effects: checkedEffects(effects), next });

/** All is done; come back when the object changes. */
export const awaitChange = (...effects) => outcome({ tag: "await-change" }, effects);

/** All is done; come back after so many milliseconds, or when the object changes. */
export const requeueAfter = (ms, ...effects) => outcome({ tag: "requeue-after-ms", val: u32(ms, "the milliseconds of requeueAfter") }, effects);

/** Come back soon, rate limited; no error. */
export const requeue = (...effects) => outcome({ tag: "requeue" }, effects);

/** Something failed that may pass. */
export const retry = (message, ...effects) => outcome({ tag: "retry", val: text(message, "the message of retry") }, effects);

/** Something failed that repeating cannot mend. */
export const fail = (message, ...effects) => outcome({ tag: "fail", val: text(message, "the message of fail") }, effects);

/** The clean-up of an object that is being deleted is done. */
export const finalized = (...effects) => outcome({ tag: "finalized" }, effects);

/** What a policy returned, if it is an outcome. */
export function checkedOutcome(value) {
  if (isObject(value) && Array.isArray(value.effects) && isObject(value.next)) return value;
  throw new TypeError(`reconcile returned ${shape(value)} and no outcome, such as awaitChange()`);
}
