// A plugin without a policy. The host calls `load` with the policy at build time, and saves the
// resulting memory.

import * as cluster from "vmhost:plugin/cluster@1.0.0";
import * as config from "vmhost:plugin/config@1.0.0";
import * as log from "vmhost:plugin/log@1.0.0";

const imports = {
  "vmhost:plugin/cluster@1.0.0": cluster,
  "vmhost:plugin/config@1.0.0": config,
  "vmhost:plugin/log@1.0.0": log,
};

let policy;

export const controller = {
  describe: () => policy.describe(),
  reconcile: (request) => policy.reconcile(request),
  mapChanges: (request) => policy.mapChanges(request),
};

export function load(source) {
  const module = { exports: {} };
  try {
    // On one line with the source's first line, so that line numbers in stacks match the source.
    // Strict mode, as in all modules.
    const run = (0, eval)(`(function (require, module, exports) {"use strict";${source}\n})`);
    run(required, module, module.exports);
  } catch (error) {
    const text = error instanceof Error ? `${error}\n${error.stack}` : String(error);
    throw text.replaceAll("<input>", ".vmhost/plugin.js");
  }
  policy = module.exports.controller;
  if (policy === undefined) throw "the entry exports no `controller`: write `export const controller = plugin({...})`";
}

function required(name) {
  if (name.startsWith("vmhost:http/") && !Object.hasOwn(imports, name)) throw new Error('a policy that sends HTTP requests has "vmhost": {"http": true} in its package.json');
  if (!Object.hasOwn(imports, name)) throw new Error(`there is no module ${name}: a policy imports the host through @vmhost/plugin`);
  return imports[name];
}
