// The host, in native tests: the one that `testing.js` set for the call. The policy's globals are
// Node's own.

import { AsyncLocalStorage } from "node:async_hooks";

/** The host of the current call. */
export const current = new AsyncLocalStorage();

export const log = (level, message) => current.getStore()?.log(level, message);
export const setting = (name) => current.getStore()?.setting(name) ?? null;

const read = (name) => (question) => {
  const host = current.getStore();
  if (host !== undefined) return host[name](question);
  throw { payload: { tag: "unavailable", val: "there is no host in a native test; call the policy through TestHost of @vmhost/plugin/testing" } };
};

export const cluster = { get: read("get"), getMany: read("getMany"), list: read("list"), getLive: read("get"), listLive: read("list") };

/**
 * Only a component is loaded before there is a host, has its own globals, and needs outcomes in
 * another form.
 */
export function started() {}
export function setGlobals() {}
export function outcomeOf(outcome) {
  return outcome;
}
