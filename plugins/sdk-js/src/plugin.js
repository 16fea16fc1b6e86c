// Turns a policy into the component's one export: parses the input, runs promises to completion,
// and turns errors into failures of the key.

import * as host from "#host";
import { isObject, optionalText, shape, text } from "./check.js";
import { stringify } from "./json.js";
import { console, log, messageOf, stackOf } from "./log.js";
import { checkedOutcome, retry } from "./outcome.js";
import { queueMicrotask, runJobs, TurnPromise } from "./promise.js";
import { MapRequest, Request } from "./request.js";

host.setGlobals({ console, Promise: TurnPromise, queueMicrotask });

/** The property in which testing.js finds the policy of an export. */
export const POLICY = Symbol("policy");

/** The plugin's export: `export const controller = plugin({...})`. */
export function plugin(policy) {
  if (!isObject(policy)) throw new TypeError(`plugin() takes an object, not ${shape(policy)}`);
  if (!isObject(policy.description)) throw new TypeError(`the description of a plugin must be an object, not ${shape(policy.description)}`);
  if (typeof policy.reconcile !== "function") throw new TypeError(`reconcile of a plugin must be a function, not ${shape(policy.reconcile)}`);
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
        return host.outcomeOf(settled("reconcile", () => policy.reconcile(new Request(record)), checkedOutcome));
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
