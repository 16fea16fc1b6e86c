// Turns a policy into the component's one export: parses the input, runs promises to completion,
// and turns errors into failures of the key.

import * as host from "#host";
import { Batch, checkedObjects } from "./batch.js";
import { isObject, optionalText, shape, text } from "./check.js";
import { other } from "./effects.js";
import { stringify } from "./json.js";
import { console, log, messageOf, stackOf } from "./log.js";
import { awaitChange, checkedOutcome, retry } from "./outcome.js";
import { queueMicrotask, runJobs, TurnPromise } from "./promise.js";
import { MapRequest, Request } from "./request.js";
import { checkedVerdict, Review } from "./review.js";

host.setGlobals({ console, Promise: TurnPromise, queueMicrotask });

/** The property in which testing.js finds the policy of an export. */
export const POLICY = Symbol("policy");

/** The plugin's export: `export const controller = plugin({...})`. */
export function plugin(policy) {
  if (!isObject(policy)) throw new TypeError(`plugin() takes an object, not ${shape(policy)}`);
  if (!isObject(policy.description)) throw new TypeError(`the description of a plugin must be an object, not ${shape(policy.description)}`);
  checkFunctions(policy);
  // Written at build time, because a description never changes.
  const description = stringify({ apiVersion: "vmhost/v1", ...policy.description });

  return {
    [POLICY]: policy,

    describe() {
      host.started();
      return description;
    },

    reconcile(record) {
      try {
        return host.outcomeOf(turn(policy, record));
      } catch (error) {
        return retry(reported(error));
      }
    },

    mapChanges(record) {
      if (policy.mapChanges === undefined) return [];
      try {
        return settled("mapChanges", () => policy.mapChanges(new MapRequest(record)), checkedNames);
      } catch (error) {
        throw reported(error);
      }
    },
  };
}

/** A plugin without controllers has no need of `reconcile`. */
function checkFunctions(policy) {
  for (const name of ["admit", "convert"]) {
    if (policy[name] !== undefined && typeof policy[name] !== "function")
      throw new TypeError(`${name} of a plugin must be a function, not ${shape(policy[name])}`);
  }
  const isNeeded = policy.admit === undefined && policy.convert === undefined;
  if ((isNeeded || policy.reconcile !== undefined) && typeof policy.reconcile !== "function")
    throw new TypeError(`reconcile of a plugin must be a function, not ${shape(policy.reconcile)}`);
}

/**
 * Calls the policy's function for this record: a review goes to `admit`, a batch of objects to
 * `convert`, all else to `reconcile`.
 */
function turn(policy, record) {
  const { group, kind } = record.key.kind;
  if (group === "vmhost" && kind === "Admission") return admission(policy, record);
  if (group === "vmhost" && kind === "Conversion") return conversion(policy, record);
  if (policy.reconcile === undefined) throw new TypeError("the plugin has no reconcile");
  return settled("reconcile", () => policy.reconcile(new Request(record)), checkedOutcome);
}

/** A failure is no verdict: the webhook's failure policy decides about the request. */
function admission(policy, { controller, object }) {
  if (policy.admit === undefined) throw new TypeError("the plugin has no admit");
  const verdict = settled("admit", () => policy.admit(new Review(controller, object)), checkedVerdict);
  return awaitChange(other("admission", verdict.response));
}

/** A failure is an answer, whose text the API server hands to the client. */
function conversion(policy, { controller, object }) {
  const batch = new Batch(controller, object);
  try {
    if (policy.convert === undefined) throw new TypeError("the plugin has no convert");
    return awaitChange(other("conversion", { convertedObjects: settled("convert", () => policy.convert(batch), checkedObjects) }));
  } catch (error) {
    return awaitChange(other("conversion", { failed: reported(error) }));
  }
}

/** Calls the policy and runs all remaining promise jobs. */
function settled(name, call, checked) {
  host.started();
  const result = call();
  let end = isObject(result) && typeof result.then === "function" ? undefined : { value: result };
  if (end === undefined) {
    result.then(
      (value) => (end = { value }),
      (error) => (end = { error }),
    );
  }
  for (const reason of runJobs()) log.error(`a rejected promise that nobody waited for: ${stackOf(reason)}`);
  if (end === undefined)
    throw new Error(`the promise of ${name} can never settle: nothing is left that could run (there are no timers and no I/O within a turn)`);
  if ("error" in end) throw end.error;
  return checked(end.value);
}

/** Logs an error with its stack, and returns its text for the host. */
function reported(error) {
  log.error(stackOf(error));
  return messageOf(error) || "an error without a message";
}

function checkedNames(names) {
  if (!Array.isArray(names)) throw new TypeError(`mapChanges returned ${shape(names)} and no list of names`);
  return names.map((name) => {
    if (!isObject(name)) throw new TypeError(`mapChanges returned a list with ${shape(name)} in it, which is no {namespace, name}`);
    return { namespace: optionalText(name.namespace, "the namespace of a name"), name: text(name.name, "the name of mapChanges") };
  });
}
