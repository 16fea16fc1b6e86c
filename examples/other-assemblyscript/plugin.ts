// A vmhost plugin in AssemblyScript, based only on the text of wit/v1: a ConfigMap with the label
// `greet=please` gets `data.greeting`.

import { cabi_realloc, getString, post_return, record, setString } from "./abi";

export { cabi_realloc, post_return };

@external("vmhost:plugin/log@1.0.0", "log")
declare function hostLog(level: i32, text: usize, length: usize): void;

function info(text: string): void {
  const at = record(8);
  setString(at, text);
  hostLog(2, load<usize>(at), load<usize>(at, 4)); // `enum level { trace, debug, info, ... }`
}

/** Returns `result<json, string>`: a byte, 0 for ok, and then the string. */
export function describe(): usize {
  const result = record(12);
  setString(
    result + 4,
    '{"apiVersion":"vmhost/v1","name":"greeter","version":"0.1.0",' +
      '"controllers":[{"name":"configmaps","primary":{"version":"v1","kind":"ConfigMap","labelSelector":"greet=please"}}],' +
      '"permissions":[{"version":"v1","kind":"ConfigMap","verbs":["patch"]}]}',
  );
  return result;
}

// The offsets of the fields of `request`: a string takes 8 bytes, an option<string> 12.
const KEY: usize = 8; // behind `controller`: group, version, kind, namespace, name
const KEY_SIZE: usize = 44;
const NAME: usize = 44;
const OBJECT: usize = 52;

// The layout of a `patch` in an `effect`, which begins with the number of its case.
const EFFECT_SIZE: usize = 84;
const PATCH: usize = 1;
const PATCH_TYPE: usize = 60; // 0: merge
const PATCH_BODY: usize = 64;

/**
 * Runs one turn. `request` has more than 16 flat values, so it is passed by address. Returns the
 * address of an `outcome`: effects, count, next.
 */
export function reconcile(request: usize): usize {
  const outcome = record(20); // `next` is 0: await-change
  const name = getString(request + NAME);
  if (!load<u8>(request + OBJECT)) {
    info("the ConfigMap " + name + " is gone");
    return outcome;
  }
  const greeting = '"greeting":"hello, ' + name + '"';
  // Enough for an example; a policy that needs more includes a JSON parser.
  if (getString(request + OBJECT + 4).includes(greeting)) return outcome;
  const effect = record(EFFECT_SIZE);
  store<u8>(effect, PATCH);
  memory.copy(effect + 4, request + KEY, KEY_SIZE);
  store<u8>(effect + PATCH_TYPE, 0);
  setString(effect + PATCH_BODY, '{"data":{' + greeting + "}}");
  store<usize>(outcome, effect);
  store<usize>(outcome, 1, 4);
  return outcome;
}

/**
 * Returns `result<list<object-name>, string>`: all zero is an empty list, because no watch needs
 * this function.
 */
export function map_changes(controller: usize, length: usize, changes: usize, count: usize): usize {
  return record(12);
}
