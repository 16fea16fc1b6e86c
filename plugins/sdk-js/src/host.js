// The host, inside the component: the imports of the contract, and the globals that are set when the policy's module is loaded.

import * as clusterImport from "vmhost:plugin/cluster@1.0.0";
import * as configImport from "vmhost:plugin/config@1.0.0";
import * as logImport from "vmhost:plugin/log@1.0.0";

/** componentize-qjs 0.4.5 takes a u32 for an i32 and cuts off what is larger; the bits of a negative number arrive as they are, in both engines. */
const lowered = (number) => (number > 0x7fff_ffff ? number | 0 : number);

export const cluster = { ...clusterImport, list: list(clusterImport.list), listLive: list(clusterImport.listLive) };

function list(read) {
  return (query) => read({ ...query, limit: lowered(query.limit) });
}

/** An outcome on its way out. */
export function outcomeOf({ effects, next }) {
  return { effects, next: next.tag === "requeue-after-ms" ? { ...next, val: lowered(next.val) } : next };
}

export const log = (level, message) => logImport.log(level, message);
export const setting = (name) => configImport.get(name);

/** QuickJS has no console, StarlingMonkey's goes to stdout; why Promise is exchanged is told in promise.js. */
export function setGlobals(globals) {
  Object.assign(globalThis, globals);
}
