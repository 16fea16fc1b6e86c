// The host, inside the component: the imports of the contract, and the globals that are set when
// the policy's module is loaded.
//
// The module is loaded when the component is built, without a host. An answer to an import at that
// time would be wrong, and would stay in the component.

import * as clusterImport from "vmhost:plugin/cluster@1.0.0";
import * as configImport from "vmhost:plugin/config@1.0.0";
import * as logImport from "vmhost:plugin/log@1.0.0";

let isBuilding = true;
const early = [];

/**
 * Called at the first call of an export, when there is a host. Logs the lines from while the module
 * was loaded.
 */
export function started() {
  if (!isBuilding) return;
  isBuilding = false;
  for (const [level, message] of early.splice(0)) logImport.log(level, message);
}

export function log(level, message) {
  if (isBuilding) early.push([level, message]);
  else logImport.log(level, message);
}

const read = (what, ask) => (question) => {
  if (isBuilding) throw new Error(`${what} cannot be read while the module is loaded, which is when the component is built; read it within reconcile`);
  return ask(question);
};

export const setting = read("a setting", (name) => configImport.get(name));

/**
 * componentize-qjs 0.4.5 treats a u32 as an i32 and limits larger values; the bits of a negative
 * number arrive unchanged, in both engines.
 */
const lowered = (number) => (number > 0x7fff_ffff ? number | 0 : number);

const listed = (ask) => (query) => ask({ ...query, limit: lowered(query.limit) });

export const cluster = {
  get: read("the cluster", (key) => clusterImport.get(key)),
  getMany: read("the cluster", (keys) => clusterImport.getMany(keys)),
  list: read(
    "the cluster",
    listed((query) => clusterImport.list(query)),
  ),
  getLive: read("the cluster", (key) => clusterImport.getLive(key)),
  listLive: read(
    "the cluster",
    listed((query) => clusterImport.listLive(query)),
  ),
};

/** Converts an outcome for the engine. */
export function outcomeOf({ effects, next }) {
  return { effects, next: next.tag === "requeue-after-ms" ? { ...next, val: lowered(next.val) } : next };
}

/**
 * Sets the globals. QuickJS has no console, StarlingMonkey's console writes to stdout, and
 * promise.js explains why Promise is replaced.
 */
export function setGlobals(globals) {
  Object.assign(globalThis, globals);
}
